import type { FastifyInstance } from 'fastify';
import { isNodeError, TrawlError } from '../errors.ts';

/** Connections the kernel holds for us before they are accepted; it caps this at its own somaxconn. */
const BACKLOG = 4_096;

export interface ListenAddress {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/** Listens and gives the URL to print. PORT_IN_USE where the address is taken. */
export async function listen(app: FastifyInstance, address: ListenAddress): Promise<string> {
  try {
    return await app.listen({ host: address.host, port: address.port, backlog: BACKLOG });
  } catch (error) {
    if (isNodeError(error) && error.code === 'EADDRINUSE') {
      throw new TrawlError(
        'PORT_IN_USE',
        `${address.host}:${address.port} is taken by another program. Stop it, or choose another port with --port.`,
        { details: { ...address }, cause: error },
      );
    }
    throw error;
  }
}

import type { FastifyInstance } from 'fastify';
import { isNodeError, TrawlError } from '../../base/errors.ts';

/** Number of connections that the kernel queues before they are accepted, limited by its somaxconn. */
const BACKLOG = 4_096;

export interface ListenAddress {
  readonly host: string;
  /** 0 lets the system choose one. */
  readonly port: number;
}

/**
 * @returns the URL to print.
 * @throws TrawlError PORT_IN_USE.
 */
export async function listen(app: FastifyInstance, address: ListenAddress): Promise<string> {
  try {
    return await app.listen({ host: address.host, port: address.port, backlog: BACKLOG });
  } catch (error) {
    if (isNodeError(error) && error.code === 'EADDRINUSE') {
      throw new TrawlError(
        'PORT_IN_USE',
        `${address.host}:${address.port} is in use by another program. Stop it, or choose another port with --port.`,
        { details: { ...address }, cause: error },
      );
    }
    throw error;
  }
}

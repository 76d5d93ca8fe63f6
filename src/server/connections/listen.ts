import { accessSync, constants, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { isNodeError, TrawlError } from '../../base/errors.ts';
import { writeFailure } from '../../base/system/write-failure.ts';

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

export interface AddressFile {
  readonly path: string;
  /** Safe to call twice. */
  remove(): void;
}

/**
 * Makes the folder for address files and checks that it is writable.
 *
 * @throws TrawlError OUTPUT_NOT_WRITABLE or DISK_FULL.
 */
export function makeAddressFolder(folder: string): string {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw writeFailure(error, folder);
  }
  return folder;
}

/**
 * Writes the server's address like the retrieval servers of ASearcher and RLinf: `ip:port` into `DIR/Host{ip}_IP{port}.txt`. Their
 * clients choose one of the files `Host*_IP*.txt` at random.
 *
 * @throws TrawlError OUTPUT_NOT_WRITABLE or DISK_FULL.
 */
export function writeAddressFile(folder: string, address: AddressInfo): AddressFile {
  const { address: bound, port } = address;
  const host = bound === '0.0.0.0' || bound === '::' ? ownAddress() : bound;
  const path = join(folder, `Host${host}_IP${port}.txt`);
  try {
    writeFileSync(path, host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`);
  } catch (error) {
    throw writeFailure(error, path);
  }
  return { path, remove: () => rmSync(path, { force: true }) };
}

/** The address at which other machines reach this one: the first IPv4 address, or loopback if there is none. */
function ownAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1';
}

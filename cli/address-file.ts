import { accessSync, constants, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { writeFailure } from '../indexer/write-failure.ts';

export interface AddressFile {
  readonly path: string;
  /** Safe to call twice. */
  remove(): void;
}

/**
 * The folder of addresses, made if needed: what is wrong with it should be said before an index is opened.
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
 * Writes where a server listens, by the rule of ASearcher's and RLinf's retrieval server: `DIR/Host{ip}_IP{port}.txt` with
 * the text `ip:port`. Their clients take one of the files `Host*_IP*.txt` at random.
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

/** By which other machines reach this one: its first network's, and loopback without any. */
function ownAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1';
}

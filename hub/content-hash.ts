import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { throwIfCancelled } from '../src/abort.ts';
import type { RepositoryFile } from './repository.ts';

/** Starts the hash of a file's content with the hub's algorithm for it. */
export function startHash({ hash, bytes }: RepositoryFile): Hash {
  return hash.algorithm === 'sha256' ? createHash('sha256') : createHash('sha1').update(`blob ${bytes}\0`);
}

/** Adds the first `bytes` bytes of a file to the hash. */
export async function hashBeginning(hash: Hash, path: string, bytes: number, signal?: AbortSignal): Promise<void> {
  if (bytes === 0) return;
  for await (const chunk of createReadStream(path, { end: bytes - 1, highWaterMark: 1024 * 1024 })) {
    throwIfCancelled(signal);
    hash.update(chunk as Buffer);
  }
}

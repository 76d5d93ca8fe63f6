import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { throwIfCancelled } from '../src/abort.ts';
import type { RepositoryFile } from './repository.ts';

/** The hash of a file's content in the form that the hub has it. */
export function startHash({ hash, bytes }: RepositoryFile): Hash {
  return hash.algorithm === 'sha256' ? createHash('sha256') : createHash('sha1').update(`blob ${bytes}\0`);
}

/** Takes the first `bytes` bytes of a file into the hash. */
export async function hashBeginning(hash: Hash, path: string, bytes: number, signal?: AbortSignal): Promise<void> {
  if (bytes === 0) return;
  for await (const piece of createReadStream(path, { end: bytes - 1, highWaterMark: 1024 * 1024 })) {
    throwIfCancelled(signal);
    hash.update(piece as Buffer);
  }
}

import { createHash, type Hash } from 'node:crypto';
import type { RepositoryFile } from './repository.ts';

/** Starts the hash of a file's content with the hub's algorithm for it. */
export function startHash({ hash, bytes }: RepositoryFile): Hash {
  return hash.algorithm === 'sha256' ? createHash('sha256') : createHash('sha1').update(`blob ${bytes}\0`);
}

import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { throwIfCancelled } from '../abort.ts';

/** SHA-256 of a file or a part of one, in hex. `onBytes` gets the length of each block read. */
export async function sha256OfFile(
  path: string,
  signal?: AbortSignal,
  onBytes?: (bytes: number) => void,
  part?: { readonly offset: number; readonly bytes: number },
): Promise<string> {
  const hash = createHash('sha256');
  if (part?.bytes === 0) return hash.digest('hex');
  const range = part === undefined ? {} : { start: part.offset, end: part.offset + part.bytes - 1 };
  for await (const chunk of createReadStream(path, { ...range, highWaterMark: 1024 * 1024 })) {
    throwIfCancelled(signal);
    hash.update(chunk as Buffer);
    onBytes?.((chunk as Buffer).length);
  }
  return hash.digest('hex');
}

/** Adds the first `bytes` bytes of a file to the hash. */
export async function hashBeginning(hash: Hash, path: string, bytes: number, signal?: AbortSignal): Promise<void> {
  if (bytes === 0) return;
  for await (const chunk of createReadStream(path, { end: bytes - 1, highWaterMark: 1024 * 1024 })) {
    throwIfCancelled(signal);
    hash.update(chunk as Buffer);
  }
}

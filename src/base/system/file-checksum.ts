import { createHash, type Hash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { throwIfCancelled } from '../abort.ts';

interface FilePart {
  readonly offset: number;
  readonly bytes: number;
}

/**
 * A text that changes whenever the content of the file does; undefined if there is no file. A copy with the same content has another text,
 * too, so a caller that has a checksum compares the checksum next. The time of the last change counts because rsync, tar and `cp -p` set the
 * modification time.
 */
export function fileState(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join('-');
}

/** SHA-256 of a file or a part of one, in hex. `onBytes` gets the length of each block read. @throws TrawlError CANCELLED. */
export async function sha256OfFile(
  path: string,
  signal?: AbortSignal,
  onBytes?: (bytes: number) => void,
  part?: FilePart,
): Promise<string> {
  const hash = createHash('sha256');
  await hashFile(hash, path, { signal, onBytes, part });
  return hash.digest('hex');
}

/** Adds a file, or a part of one, to the hash. @throws TrawlError CANCELLED. */
export async function hashFile(
  hash: Hash,
  path: string,
  {
    signal,
    onBytes,
    part,
  }: { readonly signal?: AbortSignal; readonly onBytes?: (bytes: number) => void; readonly part?: FilePart },
): Promise<void> {
  if (part?.bytes === 0) return;
  const range = part && { start: part.offset, end: part.offset + part.bytes - 1 };
  for await (const chunk of createReadStream(path, { ...range, highWaterMark: 1024 * 1024 })) {
    throwIfCancelled(signal);
    hash.update(chunk as Buffer);
    onBytes?.((chunk as Buffer).length);
  }
}

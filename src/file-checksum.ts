import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { throwIfCancelled } from './abort.ts';

/** SHA-256 of a file, hex, read in pieces; `onBytes` is told the length of each. */
export async function sha256OfFile(
  path: string,
  signal?: AbortSignal,
  onBytes?: (bytes: number) => void,
): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) {
    throwIfCancelled(signal);
    hash.update(chunk as Buffer);
    onBytes?.((chunk as Buffer).length);
  }
  return hash.digest('hex');
}

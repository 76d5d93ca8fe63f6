import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { writeFailure } from '../src/system/write-failure.ts';

/**
 * Writes strings to a file as they are produced.
 *
 * @throws TrawlError OUTPUT_NOT_WRITABLE or DISK_FULL with the path; an error of `pieces` is passed on.
 */
export async function writeOutputFile(path: string, pieces: AsyncIterable<string> | Iterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(pieces), createWriteStream(path));
  } catch (error) {
    throw writeFailure(error, path);
  }
}

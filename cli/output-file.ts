import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { writeFailure } from '../indexer/write-failure.ts';

/**
 * Writes pieces of text to a file, as they come.
 *
 * @throws TrawlError OUTPUT_NOT_WRITABLE or DISK_FULL naming the file; an error of the pieces themselves as it is.
 */
export async function writeOutputFile(path: string, pieces: AsyncIterable<string> | Iterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(pieces), createWriteStream(path));
  } catch (error) {
    throw writeFailure(error, path);
  }
}

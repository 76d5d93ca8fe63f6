import { createWriteStream, existsSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { writeFailure } from '../../src/base/system/write-failure.ts';

/**
 * Checks, before long work, that its result can be written. An existing file keeps its bytes.
 *
 * @throws TrawlError OUTPUT_NOT_WRITABLE with the path.
 */
export async function requireWritable(path: string): Promise<void> {
  const isNew = !existsSync(path);
  try {
    await (await open(path, 'a')).close();
    if (isNew) await rm(path);
  } catch (error) {
    throw writeFailure(error, path);
  }
}

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

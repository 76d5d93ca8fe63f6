import { pipeline } from 'node:stream/promises';
import { createZstdDecompress } from 'node:zlib';

import { DamagedDataError } from './compression.ts';
import { splitFrames } from './zstd-frames.ts';

/** Size of a decompressed chunk. */
const CHUNK_BYTES = 256 * 1024;

/**
 * Decompresses zstd (RFC 8878): one or more frames, including skippable ones, with their checksums. Memory is the window of a
 * frame, at most 128 MiB, as for the `zstd` program without options.
 *
 * Node's stream silently drops data after a frame in the same chunk, and in Node 22 accepts a truncated frame. `splitFrames`
 * therefore passes chunks that end with the frame, and checks that frames are complete.
 *
 * @throws DamagedDataError for data that is damaged, truncated, or followed by other data.
 */
export async function* unzstd(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  const unpacker = createZstdDecompress({ chunkSize: CHUNK_BYTES });
  // If either side fails, pipeline destroys `unpacker`, and the loop over it throws the error.
  const fed = pipeline(splitFrames(source), unpacker).catch(() => {});
  try {
    yield* unpacker as AsyncIterable<Buffer>;
  } catch (error) {
    // Node 24 throws Z_BUF_ERROR if all frames are skippable.
    if ((error as NodeJS.ErrnoException).code !== 'Z_BUF_ERROR') throw asDamaged(error);
  }
  await fed;
}

function asDamaged(error: unknown): unknown {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (code === 'ZSTD_error_frameParameter_windowTooLarge') {
    return new DamagedDataError(
      'the zstd window is larger than 128 MiB (zstd --long=28 or more); compress the file again without --long',
    );
  }
  return code.startsWith('ZSTD_') ? new DamagedDataError(`the zstd data is damaged: ${message}`) : error;
}

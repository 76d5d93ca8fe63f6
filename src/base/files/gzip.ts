import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { DamagedDataError } from './compression.ts';

/** Size of a decompressed chunk. */
const CHUNK_BYTES = 256 * 1024;

/**
 * Decompresses gzip of one or more members.
 *
 * @throws DamagedDataError for data after the last member, except zero padding; errors of zlib for damaged data.
 */
export async function* gunzip(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let packedBytes = 0;
  let lastChunk: Buffer = Buffer.alloc(0);
  const unpacker = createGunzip({ chunkSize: CHUNK_BYTES });
  async function* counted(): AsyncGenerator<Buffer, void> {
    for await (const chunk of source) {
      packedBytes += chunk.length;
      lastChunk = chunk;
      yield chunk;
    }
  }
  // If either side fails, pipeline destroys `unpacker`, and the loop over it throws the error.
  const fed = pipeline(counted(), unpacker).catch(() => {});
  yield* unpacker as AsyncIterable<Buffer>;
  await fed;
  // Node silently ends the stream at data that is not a gzip member, so rows could be missing.
  const left = packedBytes - unpacker.bytesWritten;
  if (left <= 0) return;
  if (left <= lastChunk.length && lastChunk.subarray(lastChunk.length - left).every((byte) => byte === 0)) return;
  throw new DamagedDataError(
    `${left} bytes after the gzip data are not gzip: a further member is damaged, or something was appended. Download ` +
      'the file again, or check it with gzip -t',
  );
}

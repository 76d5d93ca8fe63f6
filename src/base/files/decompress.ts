import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { type Compression, DamagedDataError } from './compression.ts';

/** Size of a decompressed chunk. */
const CHUNK_BYTES = 256 * 1024;

const FRAME_MAGIC = 0xfd2fb528;
/** First of the 16 magic numbers of skippable frames. */
const SKIPPABLE_MAGIC = 0x184d2a50;
const RLE_BLOCK = 1;

/** The header field to read next. */
type Field = 'magic' | 'skippable size' | 'descriptor' | 'block header';
const FIELD_BYTES: Readonly<Record<Field, number>> = {
  magic: 4,
  'skippable size': 4,
  descriptor: 1,
  'block header': 3,
};

/** @throws as `gunzip` and `unzstd`. */
export function decompress(
  source: AsyncGenerator<Buffer, void>,
  compression: Compression,
): AsyncGenerator<Buffer, void> {
  return compression === 'none' ? source : compression === 'gzip' ? gunzip(source) : unzstd(source);
}

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

/**
 * Splits zstd data (RFC 8878) into chunks that each contain bytes of one frame only, and omits skippable frames. Parses only the
 * headers of frames and blocks.
 *
 * @throws DamagedDataError for a truncated frame, or for other data after a frame.
 */
async function* splitFrames(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let field: Field = 'magic';
  const value = Buffer.alloc(4);
  let valueBytes = 0;
  /** Bytes until the next field or the end of the frame. */
  let bodyBytes = 0;
  let endsAfterBody = false;
  let isSkippable = false;
  let checksumBytes = 0;
  let position = 0;

  for await (const chunk of source) {
    let start = 0;
    let end = 0;
    // Bytes of a magic number that the chunk before ended with. They were held back: the frame may be skippable.
    let heldBytes = field === 'magic' ? valueBytes : 0;
    while (end < chunk.length) {
      if (bodyBytes > 0) {
        const bytes = Math.min(bodyBytes, chunk.length - end);
        bodyBytes -= bytes;
        end += bytes;
      } else {
        value[valueBytes++] = chunk[end++]!;
        if (valueBytes < FIELD_BYTES[field]) continue;
        valueBytes = 0;
        read();
        if (heldBytes > 0 && !isSkippable) yield Buffer.from(value.subarray(0, heldBytes));
        heldBytes = 0;
      }
      if (bodyBytes > 0 || !endsAfterBody) continue;
      if (!isSkippable) yield chunk.subarray(start, end);
      start = end;
      field = 'magic';
      endsAfterBody = false;
      isSkippable = false;
    }
    if (field !== 'magic' && start < end && !isSkippable) yield chunk.subarray(start, end);
    position += chunk.length;
  }
  if (field !== 'magic' || valueBytes > 0) {
    throw new DamagedDataError('the zstd data ends within a frame: the file is truncated. Download it again');
  }

  function read(): void {
    switch (field) {
      case 'magic': {
        const magic = value.readUInt32LE();
        isSkippable = (magic & 0xfffffff0) === SKIPPABLE_MAGIC;
        if (!isSkippable && magic !== FRAME_MAGIC) {
          throw new DamagedDataError(
            `the data from about byte ${position} is not a zstd frame: a frame is damaged, or something was appended. ` +
              'Download the file again, or check it with zstd -t',
          );
        }
        field = isSkippable ? 'skippable size' : 'descriptor';
        return;
      }
      case 'skippable size':
        bodyBytes = value.readUInt32LE();
        endsAfterBody = true;
        return;
      case 'descriptor': {
        const descriptor = value[0]!;
        const isSingleSegment = (descriptor & 0x20) !== 0;
        const windowBytes = isSingleSegment ? 0 : 1;
        const dictionaryBytes = [0, 1, 2, 4][descriptor & 3]!;
        const contentSizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6]!;
        checksumBytes = (descriptor & 4) !== 0 ? 4 : 0;
        bodyBytes = windowBytes + dictionaryBytes + contentSizeBytes;
        field = 'block header';
        return;
      }
      case 'block header': {
        const header = value.readUIntLE(0, 3);
        const isLast = (header & 1) !== 0;
        const type = (header >> 1) & 3;
        bodyBytes = (type === RLE_BLOCK ? 1 : header >> 3) + (isLast ? checksumBytes : 0);
        endsAfterBody = isLast;
      }
    }
  }
}

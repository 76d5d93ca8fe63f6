import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';

import { TrawlError } from '../src/errors.ts';
import { type Compression, DamagedDataError, startsLike } from './compression.ts';
import { onlyMember } from './only-member.ts';
import { unzstd } from './zstd.ts';

/** Bytes read at once, and bytes unpacked at once. */
const CHUNK_BYTES = 256 * 1024;

export interface ReadBytesOptions {
  /** gzip of one member or several, zstd of one frame or several. */
  compression: Compression;
  /** Called with each chunk as it lies on disk, for counting and hashing. */
  onRead: (chunk: Buffer) => void;
  /** Byte to begin at, for plain files that are no archive. Default 0. */
  start?: number | undefined;
  /** Called when the file turns out to be a tar archive: its text then begins at another byte. */
  onArchive?: (() => void) | undefined;
}

/** The bytes of a file, unpacked, of a tar archive those of its one file. Leaving the loop early closes the file. */
export function readBytes(path: string, options: ReadBytesOptions): AsyncGenerator<Buffer, void> {
  const { compression, start = 0 } = options;
  const source = fileChunks(path, options);
  if (start > 0) return source;
  const unpacked = compression === 'none' ? source : compression === 'gzip' ? gunzip(source) : unzstd(source);
  return onlyMember(unpacked, options.onArchive);
}

/** @throws DamagedDataError for what follows the last member, where it is more than padding with zeros. */
async function* gunzip(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
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
  // A failure of either end destroys `unpacker` with that error, so the loop over it is what reports it.
  const fed = pipeline(counted(), unpacker).catch(() => {});
  yield* unpacker as AsyncIterable<Buffer>;
  await fed;
  // Node ends a stream at what is no further member, silently: rows could be missing.
  const left = packedBytes - unpacker.bytesWritten;
  if (left <= 0) return;
  if (left <= lastChunk.length && lastChunk.subarray(lastChunk.length - left).every((byte) => byte === 0)) return;
  throw new DamagedDataError(
    `${left} bytes follow the gzip data that are none: a further part is damaged, or something was appended. Get the ` +
      'file again, or check it with gzip -t',
  );
}

async function* fileChunks(
  path: string,
  { compression, onRead, start = 0 }: ReadBytesOptions,
): AsyncGenerator<Buffer, void> {
  let first = start === 0;
  // A pipe takes no position, not even 0.
  const position = first ? {} : { start };
  const stream = createReadStream(path, { highWaterMark: CHUNK_BYTES, ...position });
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (first) checkMagic(path, compression, chunk);
    first = false;
    onRead(chunk);
    yield chunk;
  }
  if (first) checkMagic(path, compression, Buffer.alloc(0));
}

const EXTENSION = { gzip: 'gz', zstd: 'zst' } as const;

/** Compressed text under a plain name, or the reverse, would otherwise be one baffling bad line. */
function checkMagic(path: string, compression: Compression, start: Buffer): void {
  if (compression !== 'none') {
    if (startsLike(compression, start)) return;
    throw new TrawlError(
      'CORPUS_FORMAT_UNKNOWN',
      `${path} is said to be ${compression}, but does not start like it. If it is plain text, rename it or say ` +
        '--format jsonl or tsv.',
      { details: { path } },
    );
  }
  const found = (['gzip', 'zstd'] as const).find((kind) => start.length >= 4 && startsLike(kind, start));
  if (found === undefined) return;
  const extension = EXTENSION[found];
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    `${path} is said to be plain text, but is ${found}. Rename it with .${extension}, or say --format ` +
      `jsonl.${extension} or tsv.${extension}.`,
    { details: { path } },
  );
}

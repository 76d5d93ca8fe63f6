import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';

import { TrawlError } from '../src/errors.ts';

/** Bytes read at once, and bytes unpacked at once. */
const CHUNK_BYTES = 256 * 1024;

export interface ReadBytesOptions {
  /** The file is gzip, of one member or several. */
  gzip: boolean;
  /** Called with each chunk as it lies on disk, for counting and hashing. */
  onRead: (chunk: Buffer) => void;
  /** Byte to begin at, for plain files. Default 0. */
  start?: number | undefined;
}

/** The bytes of a file, unpacked. Leaving the loop early closes the file. */
export async function* readBytes(path: string, options: ReadBytesOptions): AsyncGenerator<Buffer, void> {
  const source = fileChunks(path, options);
  if (!options.gzip) {
    yield* source;
    return;
  }
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  // A failure of either end destroys `gunzip` with that error, so the loop over it is what reports it.
  pipeline(source, gunzip).catch(() => {});
  yield* gunzip as AsyncIterable<Buffer>;
}

async function* fileChunks(path: string, { gzip, onRead, start = 0 }: ReadBytesOptions): AsyncGenerator<Buffer, void> {
  let first = start === 0;
  // A pipe takes no position, not even 0.
  const position = first ? {} : { start };
  const stream = createReadStream(path, { highWaterMark: CHUNK_BYTES, ...position });
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (first) checkMagic(path, gzip, chunk);
    first = false;
    onRead(chunk);
    yield chunk;
  }
  if (first) checkMagic(path, gzip, Buffer.alloc(0));
}

/** Compressed text under a plain name, or the reverse, would otherwise be one baffling bad line. */
function checkMagic(path: string, gzip: boolean, start: Buffer): void {
  const isGzip = start[0] === 0x1f && start[1] === 0x8b;
  // A pipe may deliver a single byte first; then the unpacker itself decides.
  if (isGzip === gzip || (gzip && start.length === 1)) return;
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    gzip
      ? `${path} is said to be gzip, but does not start like it. If it is plain text, rename it or say --format jsonl or tsv.`
      : `${path} is said to be plain text, but is gzip. Rename it with .gz, or say --format jsonl.gz or tsv.gz.`,
    { details: { path } },
  );
}

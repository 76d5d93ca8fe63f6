import { createReadStream } from 'node:fs';
import { TrawlError } from '../src/base/errors.ts';
import { type Compression, compressionOf, startsLike } from '../src/base/files/compression.ts';
import { decompress } from '../src/base/files/decompress.ts';
import { checkIsText } from '../src/base/files/foreign-file.ts';
import { onlyMember } from '../src/base/files/only-member.ts';

const CHUNK_BYTES = 256 * 1024;

interface ReadBytesOptions {
  /** gzip may have several members, zstd several frames. */
  compression: Compression;
  /** Called with each chunk before decompression, for counting and hashing. */
  onRead: (chunk: Buffer) => void;
  /** Whether the file is not text. Default: a file that begins like one of another format is refused. */
  isBinary?: boolean;
  /** Byte offset to start at; only for uncompressed files that are not archives. Default: 0. */
  start?: number;
  /** Called if the file is a tar archive. Offsets in its text are not offsets in the file. */
  onArchive?: () => void;
}

/** Reads a file, decompressed, or the only member of a tar archive. Leaving the loop early closes the file. */
export function readBytes(path: string, options: ReadBytesOptions): AsyncGenerator<Buffer, void> {
  const { compression, start = 0 } = options;
  const source = fileChunks(path, options);
  if (start > 0) return source;
  const content = onlyMember(decompress(source, compression), options.onArchive);
  return options.isBinary === true ? content : checkedText(path, content);
}

async function* checkedText(path: string, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let isFirst = true;
  for await (const chunk of chunks) {
    if (isFirst) checkIsText(path, chunk);
    isFirst = false;
    yield chunk;
  }
}

async function* fileChunks(
  path: string,
  { compression, onRead, start = 0 }: ReadBytesOptions,
): AsyncGenerator<Buffer, void> {
  let first = start === 0;
  // A pipe does not accept a position, not even 0.
  const stream = createReadStream(path, { highWaterMark: CHUNK_BYTES, start: start === 0 ? undefined : start });
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (first) checkMagic(path, compression, chunk);
    first = false;
    onRead(chunk);
    yield chunk;
  }
  if (first) checkMagic(path, compression, Buffer.alloc(0));
}

const EXTENSION = { gzip: 'gz', zstd: 'zst' } as const;

/** Without this check, compressed data with the suffix of plain text would be reported as one bad line. */
function checkMagic(path: string, compression: Compression, start: Buffer): void {
  if (compression !== 'none') {
    if (startsLike(compression, start)) return;
    throw new TrawlError(
      'CORPUS_FORMAT_UNKNOWN',
      `${path} should be ${compression}, but its first bytes are not. If it is plain text, rename it, or set --format ` +
        'to a name without compression, such as jsonl.',
      { details: { path } },
    );
  }
  const found = compressionOf(start);
  if (found === 'none') return;
  const extension = EXTENSION[found];
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    `${path} should be plain text, but it is ${found}. Append .${extension} to its name, or set --format ` +
      `to a name that ends so, such as jsonl.${extension}.`,
    { details: { path } },
  );
}

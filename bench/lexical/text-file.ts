import { createReadStream, createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';

/** Bytes that are collected before they are written. */
const BLOCK_BYTES = 1 << 20;

/**
 * Writes texts for the baselines: for each its length in bytes as a little-endian 32-bit number, and UTF-8.
 *
 * @returns the number of texts, and their bytes without the lengths.
 */
export async function writeTexts(
  path: string,
  texts: Iterable<string> | AsyncIterable<string>,
): Promise<{ texts: number; bytes: number }> {
  const written = { texts: 0, bytes: 0 };
  async function* blocks(): AsyncGenerator<Buffer> {
    let pieces: Buffer[] = [];
    let size = 0;
    for await (const text of texts) {
      const bytes = Buffer.from(text);
      const length = Buffer.alloc(4);
      length.writeUInt32LE(bytes.length);
      pieces.push(length, bytes);
      size += 4 + bytes.length;
      written.texts++;
      written.bytes += bytes.length;
      if (size < BLOCK_BYTES) continue;
      yield Buffer.concat(pieces);
      pieces = [];
      size = 0;
    }
    yield Buffer.concat(pieces);
  }
  await pipeline(blocks, createWriteStream(path));
  return written;
}

/** Yields the texts of a file in blocks. */
export async function* readTexts(path: string): AsyncGenerator<string[]> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(path, { highWaterMark: BLOCK_BYTES })) {
    const bytes: Buffer = Buffer.concat([rest, chunk as Buffer]);
    const texts: string[] = [];
    let at = 0;
    while (at + 4 <= bytes.length) {
      const end = at + 4 + bytes.readUInt32LE(at);
      if (end > bytes.length) break;
      texts.push(bytes.toString('utf8', at + 4, end));
      at = end;
    }
    rest = bytes.subarray(at);
    if (texts.length > 0) yield texts;
  }
  if (rest.length > 0) throw new Error(`${path} ends within a text`);
}

/** The hits of one query, best first. */
export interface Hits {
  readonly rows: Uint32Array;
  /** Bits of the float32 scores. */
  readonly scoreBits: Uint32Array;
}

/** Reads the hits that a baseline wrote: for each query their number, then row and float32 score of each, all little-endian. */
export async function readHits(path: string): Promise<Hits[]> {
  const bytes = await readFile(path);
  const lists: Hits[] = [];
  for (let at = 0; at < bytes.length; ) {
    const count = bytes.readUInt32LE(at);
    at += 4;
    const hits = { rows: new Uint32Array(count), scoreBits: new Uint32Array(count) };
    for (let i = 0; i < count; i++, at += 8) {
      hits.rows[i] = bytes.readUInt32LE(at);
      hits.scoreBits[i] = bytes.readUInt32LE(at + 4);
    }
    lists.push(hits);
  }
  return lists;
}

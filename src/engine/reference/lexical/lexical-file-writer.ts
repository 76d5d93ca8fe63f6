import { open } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { writeAt } from '../../../base/system/durable-file.ts';
import { writeFailure } from '../../../base/system/write-failure.ts';
import { TimeSlice } from '../../../base/time-slice.ts';
import { decodeLength } from '../../lexical/bm25.ts';
import type { EngineAnalyser } from '../../lexical/lexical-settings.ts';
import type { LexicalFileCounts } from '../../native/lexical-functions.ts';
import { ANALYSER_NUMBERS, HALF_BYTE, HEADER_BYTES, MAGIC, TERMS_PER_BLOCK, VERSION } from './lexical-format.ts';
import { BLOCK_POSTINGS, ByteBuffer, encodeBlock, type Postings } from './posting-block.ts';

/** Zero bytes after the lists. */
const LISTS_PADDING = 8;
/** The sections after the lists begin at multiples of it. */
const SECTION_ALIGNMENT = 64;
/** A tf in the bounds that stands for any number. */
const UNBOUNDED_TF = 255;
const { fround } = Math;

/** A term as UTF-8, and its postings in row order. */
export interface TermPostings {
  readonly term: Uint8Array;
  readonly postings: Postings;
}

interface LexicalContent {
  /** Tokens of all rows. */
  readonly tokens: number;
  /** One of each row. */
  readonly lengthCodes: Uint8Array;
  /** The terms in the order of their UTF-8 bytes, each once. */
  byTerm(): Iterable<TermPostings>;
}

/**
 * Writes a `.bm25` file and flushes it to disk, with the same bytes as native/src/lexical/lexical_writer.cpp. Holds it in memory
 * meanwhile.
 *
 * @throws TrawlError DISK_FULL or OUTPUT_NOT_WRITABLE, before anything is encoded if the file cannot be created; CANCELLED.
 */
export async function writeLexicalFile(
  path: string,
  analyser: EngineAnalyser,
  content: LexicalContent,
  signal?: AbortSignal,
): Promise<LexicalFileCounts> {
  const { tokens, lengthCodes } = content;
  try {
    const file = await open(path, 'w');
    try {
      const encoder = new LexicalEncoder(lengthCodes);
      const slice = new TimeSlice(signal);
      for (const { term, postings } of content.byTerm()) {
        encoder.addTerm(term, postings);
        if (slice.isOver) await slice.yield();
      }
      const { terms, postings, sections } = encoder.finish();
      const rows = lengthCodes.length;
      const documents = lengthCodes.reduce((count, code) => count + Number(code > 0), 0);
      const numbers: (number | bigint)[] = [rows, documents, tokens, terms, postings];
      let offset = HEADER_BYTES;
      for (const section of sections) {
        await writeAt(file, section, offset);
        numbers.push(offset, section.length, await sectionChecksum(section));
        offset = Math.ceil((offset + section.length) / SECTION_ALIGNMENT) * SECTION_ALIGNMENT;
      }
      numbers.push(lengthCodes.reduce((largest, code) => Math.max(largest, code), 0));
      await file.sync();
      // Readers recognise the file by its header, so it is written after everything else is on the disk.
      await writeAt(file, encodeHeader(analyser, numbers), 0);
      await file.sync();
      return { rows, documents, tokens, terms, postings };
    } finally {
      await file.close();
    }
  } catch (error) {
    throw writeFailure(error, path);
  }
}

/** Encodes the sections of the file. */
class LexicalEncoder {
  readonly #lengthCodes: Uint8Array;
  readonly #lists = new ByteBuffer();
  readonly #dictionary = new ByteBuffer();
  readonly #places: number[] = [];
  #previousTerm: Uint8Array = new Uint8Array();
  #terms = 0;
  #postings = 0;

  constructor(lengthCodes: Uint8Array) {
    this.#lengthCodes = lengthCodes;
  }

  addTerm(term: Uint8Array, postings: Postings): void {
    const { rows, tfs } = postings;
    const begins = this.#terms % TERMS_PER_BLOCK === 0;
    if (begins) this.#places.push(this.#dictionary.length, this.#lists.length);
    this.#appendTerm(term, begins ? 0 : sharedBytes(term, this.#previousTerm));
    const once = rows.length === 1 && tfs[0] === 1;
    this.#dictionary.varint(once ? 0 : rows.length);
    if (rows.length === 1) {
      this.#dictionary.varint(rows[0]!);
      if (!once) this.#dictionary.varint(tfs[0]! - 1);
    } else {
      const before = this.#lists.length;
      this.#appendList(postings);
      this.#dictionary.varint(this.#lists.length - before);
    }
    this.#terms++;
    this.#postings += rows.length;
    this.#previousTerm = term;
  }

  finish(): { readonly terms: number; readonly postings: number; readonly sections: readonly Uint8Array[] } {
    this.#places.push(this.#dictionary.length, this.#lists.length);
    this.#lists.append(new Uint8Array(LISTS_PADDING));
    const places = new Uint8Array(BigUint64Array.from(this.#places, BigInt).buffer);
    return {
      terms: this.#terms,
      postings: this.#postings,
      sections: [this.#lists.bytes, this.#lengthCodes, this.#dictionary.bytes, places],
    };
  }

  #appendTerm(term: Uint8Array, shared: number): void {
    const more = term.length - shared;
    const [high, low] = [Math.min(shared, HALF_BYTE), Math.min(more, HALF_BYTE)];
    this.#dictionary.byte((high << 4) | low);
    if (high === HALF_BYTE) this.#dictionary.varint(shared - HALF_BYTE);
    if (low === HALF_BYTE) this.#dictionary.varint(more - HALF_BYTE);
    this.#dictionary.append(term.subarray(shared));
  }

  #appendList({ rows, tfs }: Postings): void {
    if (rows.length <= BLOCK_POSTINGS) {
      encodeBlock({ rows, tfs }, -1, this.#lists);
      return;
    }
    const heads = new ByteBuffer();
    const blocks = new ByteBuffer();
    const listBounds = new BoundCollector();
    let previousRow = -1;
    for (let first = 0; first < rows.length; first += BLOCK_POSTINGS) {
      const block = {
        rows: rows.subarray(first, first + BLOCK_POSTINGS),
        tfs: tfs.subarray(first, first + BLOCK_POSTINGS),
      };
      const blockBounds = new BoundCollector();
      for (const [i, row] of block.rows.entries()) blockBounds.add(block.tfs[i]!, this.#lengthCodes[row]!);
      const bounds = blockBounds.bytes();
      for (let i = 0; i < bounds.length; i += 2) listBounds.add(bounds[i]!, bounds[i + 1]!);
      const lastRow = block.rows.at(-1)!;
      heads.uint32(lastRow);
      heads.uint32(blocks.length);
      heads.append(bounds);
      encodeBlock(block, previousRow, blocks);
      previousRow = lastRow;
    }
    for (const part of [listBounds.bytes(), heads.bytes, blocks.bytes]) this.#lists.append(part);
  }
}

function encodeHeader(analyser: EngineAnalyser, numbers: readonly (number | bigint)[]): Uint8Array {
  const header = new Uint8Array(HEADER_BYTES);
  const view = new DataView(header.buffer);
  header.set(Buffer.from(MAGIC));
  view.setUint32(8, VERSION, true);
  view.setUint32(12, ANALYSER_NUMBERS.indexOf(analyser), true);
  for (const [i, number] of numbers.entries()) view.setBigUint64(16 + 8 * i, BigInt(number), true);
  view.setBigUint64(HEADER_BYTES - 8, checksum64(header), true);
  return header;
}

/** Number of bytes at the start of both terms that are equal. */
function sharedBytes(term: Uint8Array, previous: Uint8Array): number {
  const limit = Math.min(term.length, previous.length);
  let shared = 0;
  while (shared < limit && term[shared] === previous[shared]) shared++;
  return shared;
}

interface BoundPair {
  readonly tf: number;
  readonly lengthCode: number;
}

/** Collects postings and gives four pairs that dominate them, the same as native/src/lexical/bound_pairs.cpp. */
class BoundCollector {
  /** The added pairs that no other dominates, in order of rising tf and length code. */
  readonly #pairs: BoundPair[] = [];

  add(tf: number, lengthCode: number): void {
    const bounded = Math.min(tf, UNBOUNDED_TF);
    let end = this.#pairs.findIndex((pair) => pair.tf >= bounded);
    if (end < 0) end = this.#pairs.length;
    const next = this.#pairs[end];
    if (next !== undefined && next.lengthCode <= lengthCode) return;
    let first = end;
    while (first > 0 && this.#pairs[first - 1]!.lengthCode >= lengthCode) first--;
    if (next?.tf === bounded) end++;
    this.#pairs.splice(first, end - first, { tf: bounded, lengthCode });
  }

  /** Four pairs as bytes: tf and length code of each. The last is repeated if fewer suffice. */
  bytes(): Uint8Array {
    const merged = [...this.#pairs];
    while (merged.length > 4) mergeTwo(merged);
    return Uint8Array.from({ length: 8 }, (_, i) => {
      const { tf, lengthCode } = merged[Math.min(i >> 1, merged.length - 1)]!;
      return i % 2 === 0 ? tf : lengthCode;
    });
  }
}

/** Merges the two neighbours whose merging raises the bound least. */
function mergeTwo(pairs: BoundPair[]): void {
  let best = 0;
  let bestGrowth = 2;
  for (let i = 0; i + 1 < pairs.length; i++) {
    const [low, high] = [pairs[i]!, pairs[i + 1]!];
    const merged = estimatedScore({ tf: high.tf, lengthCode: low.lengthCode });
    const growth = fround(merged - Math.max(estimatedScore(low), estimatedScore(high)));
    if (growth < bestGrowth) [best, bestGrowth] = [i, growth];
  }
  pairs.splice(best, 2, { tf: pairs[best + 1]!.tf, lengthCode: pairs[best]!.lengthCode });
}

/** Each operation is rounded to float32. */
function estimatedScore({ tf, lengthCode }: BoundPair): number {
  const length = fround(decodeLength(lengthCode));
  const relative = fround(fround(fround(0.4) * length) / 60);
  const norm = fround(fround(0.9) * fround(fround(0.6) + relative));
  return fround(tf / fround(tf + norm));
}

const PIECE_BYTES = 1 << 20;

/** The checksum of a section: of each mebibyte, with the checksum of the one before it as its seed. */
async function sectionChecksum(bytes: Uint8Array): Promise<bigint> {
  let sum = 0n;
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    sum = checksum64(bytes.subarray(at, at + PIECE_BYTES), sum);
    await setImmediate();
  }
  return sum;
}

const PRIME_1 = 0x9e3779b185ebca87n;
const PRIME_2 = 0xc2b2ae3d27d4eb4fn;

/** The 64-bit checksum of native/src/base/checksum.hpp. */
function checksum64(bytes: Uint8Array, seed = 0n): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const lanes = [u64(seed + PRIME_1), seed ^ PRIME_2, u64(seed + 1n), u64(seed - PRIME_1)];
  let at = 0;
  for (; bytes.length - at >= 32; at += 32) {
    for (let i = 0; i < 4; i++) {
      const word = view.getBigUint64(at + 8 * i, true);
      lanes[i] = u64(rotated(u64(lanes[i]! + u64(word * PRIME_2)), 31n) * PRIME_1);
    }
  }
  let sum = u64(BigInt(bytes.length) * PRIME_1);
  for (const lane of lanes) sum = u64(rotated(sum ^ lane, 27n) * PRIME_1 + PRIME_2);
  for (; at < bytes.length; at++) sum = u64(rotated(sum ^ u64(BigInt(bytes[at]!) * PRIME_2), 11n) * PRIME_1);
  sum = u64((sum ^ (sum >> 33n)) * PRIME_2);
  return sum ^ (sum >> 29n);
}

function rotated(value: bigint, bits: bigint): bigint {
  return u64(value << bits) | (value >> (64n - bits));
}

function u64(value: bigint): bigint {
  return BigInt.asUintN(64, value);
}

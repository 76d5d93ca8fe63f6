import { type FileHandle, open } from 'node:fs/promises';
import { writeFailure } from '../../../base/system/write-failure.ts';
import type { LexicalFileCounts } from '../../native/lexical-functions.ts';
import { BoundCollector } from './bound-pairs.ts';
import { ByteBuffer } from './byte-buffer.ts';
import { encodeBlock } from './encode-block.ts';
import {
  ANALYSER_NUMBERS,
  BLOCK_POSTINGS,
  type FileAnalyser,
  HALF_BYTE,
  HEADER_BYTES,
  LISTS_PADDING,
  MAGIC,
  SECTION_ALIGNMENT,
  TERMS_PER_BLOCK,
  VERSION,
} from './lexical-format.ts';
import type { Postings } from './posting-block.ts';
import { checksum64, SectionChecksum } from './section-checksum.ts';

/** Bytes of lists that wait to be written. */
const WRITE_BYTES = 1 << 20;

interface WrittenSection {
  readonly offset: number;
  readonly bytes: number;
  readonly checksum: bigint;
}

/** Writes a `.bm25` file from terms in sorted order, with the same bytes as native/src/lexical/lexical_writer.cpp. */
export class ReferenceLexicalFileWriter {
  readonly #path: string;
  readonly #analyser: FileAnalyser;
  readonly #lengthCodes: Uint8Array;
  readonly #tokens: number;
  readonly #file: FileHandle;
  #position = HEADER_BYTES;
  readonly #pending = new ByteBuffer();
  readonly #listsChecksum = new SectionChecksum();
  readonly #dictionary = new ByteBuffer();
  readonly #places: number[] = [];
  #previousTerm: Uint8Array = new Uint8Array();
  #terms = 0;
  #postings = 0;

  private constructor(path: string, analyser: FileAnalyser, lengthCodes: Uint8Array, tokens: number, file: FileHandle) {
    this.#path = path;
    this.#analyser = analyser;
    this.#lengthCodes = lengthCodes;
    this.#tokens = tokens;
    this.#file = file;
  }

  /**
   * @param lengthCodes one of each row.
   * @throws TrawlError DISK_FULL or OUTPUT_NOT_WRITABLE.
   */
  static async create(
    path: string,
    { analyser, lengthCodes, tokens }: { analyser: FileAnalyser; lengthCodes: Uint8Array; tokens: number },
  ): Promise<ReferenceLexicalFileWriter> {
    try {
      return new ReferenceLexicalFileWriter(path, analyser, lengthCodes, tokens, await open(path, 'w'));
    } catch (error) {
      throw writeFailure(error, path);
    }
  }

  /** Terms must come in the order of their UTF-8 bytes, each once, with their postings in row order. */
  async addTerm(term: Uint8Array, postings: Postings): Promise<void> {
    const { rows, tfs } = postings;
    const begins = this.#terms % TERMS_PER_BLOCK === 0;
    if (begins) this.#places.push(this.#dictionary.length, this.#listsBytes);
    this.#appendTerm(term, begins ? 0 : sharedBytes(term, this.#previousTerm));
    const once = rows.length === 1 && tfs[0] === 1;
    this.#dictionary.varint(once ? 0 : rows.length);
    if (rows.length === 1) {
      this.#dictionary.varint(rows[0]!);
      if (!once) this.#dictionary.varint(tfs[0]! - 1);
    } else {
      const before = this.#pending.length;
      this.#appendList(postings);
      this.#dictionary.varint(this.#pending.length - before);
    }
    this.#terms++;
    this.#postings += rows.length;
    this.#previousTerm = term;
    if (this.#pending.length >= WRITE_BYTES) await this.#writePending();
  }

  /** Writes the rest of the file and flushes it to disk. Before that, readers refuse the file. */
  async finish(): Promise<LexicalFileCounts> {
    this.#pending.append(new Uint8Array(LISTS_PADDING));
    await this.#writePending();
    const listsBytes = this.#listsBytes;
    this.#places.push(this.#dictionary.length, listsBytes - LISTS_PADDING);
    const sections = [
      { offset: HEADER_BYTES, bytes: listsBytes, checksum: this.#listsChecksum.finish() },
      await this.#appendSection(this.#lengthCodes),
      await this.#appendSection(this.#dictionary.bytes),
      await this.#appendSection(new Uint8Array(BigUint64Array.from(this.#places, BigInt).buffer)),
    ];
    const rows = this.#lengthCodes.length;
    const documents = rows - this.#lengthCodes.reduce((count, code) => count + Number(code === 0), 0);
    const counts = { rows, documents, tokens: this.#tokens, terms: this.#terms, postings: this.#postings };
    try {
      await this.#file.sync();
      // Readers recognise the file by its header, so it is written after everything else is on the disk.
      await this.#write(this.#header(counts, sections), 0);
      await this.#file.sync();
    } catch (error) {
      throw writeFailure(error, this.#path);
    }
    await this.close();
    return counts;
  }

  /** Safe to call twice. */
  close(): Promise<void> {
    return this.#file.close();
  }

  get #listsBytes(): number {
    return this.#position - HEADER_BYTES + this.#pending.length;
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
      encodeBlock({ rows, tfs }, -1, this.#pending);
      return;
    }
    const heads = new ByteBuffer();
    const blocks = new ByteBuffer();
    const listBounds = new BoundCollector();
    const blockBounds = new BoundCollector();
    let previousRow = -1;
    for (let first = 0; first < rows.length; first += BLOCK_POSTINGS) {
      const block = {
        rows: rows.subarray(first, first + BLOCK_POSTINGS),
        tfs: tfs.subarray(first, first + BLOCK_POSTINGS),
      };
      blockBounds.clear();
      for (const [i, row] of block.rows.entries()) blockBounds.add(block.tfs[i]!, this.#lengthCodes[row]!);
      const bounds = blockBounds.bytes();
      listBounds.addBytes(bounds);
      const lastRow = block.rows.at(-1)!;
      heads.uint32(lastRow);
      heads.uint32(blocks.length);
      heads.append(bounds);
      encodeBlock(block, previousRow, blocks);
      previousRow = lastRow;
    }
    for (const part of [listBounds.bytes(), heads.bytes, blocks.bytes]) this.#pending.append(part);
  }

  #header(counts: LexicalFileCounts, sections: readonly WrittenSection[]): Uint8Array {
    const header = new Uint8Array(HEADER_BYTES);
    const view = new DataView(header.buffer);
    header.set(Buffer.from(MAGIC));
    view.setUint32(8, VERSION, true);
    view.setUint32(12, ANALYSER_NUMBERS.indexOf(this.#analyser), true);
    const { rows, documents, tokens, terms, postings } = counts;
    const longest = this.#lengthCodes.reduce((largest, code) => Math.max(largest, code), 0);
    const places = sections.flatMap(({ offset, bytes, checksum }) => [offset, bytes, checksum]);
    const numbers = [rows, documents, tokens, terms, postings, ...places, longest];
    for (const [i, number] of numbers.entries()) view.setBigUint64(16 + 8 * i, BigInt(number), true);
    view.setBigUint64(HEADER_BYTES - 8, checksum64(header), true);
    return header;
  }

  async #writePending(): Promise<void> {
    this.#listsChecksum.add(this.#pending.bytes);
    await this.#append(this.#pending.bytes);
    this.#pending.clear();
  }

  async #appendSection(bytes: Uint8Array): Promise<WrittenSection> {
    await this.#append(new Uint8Array(-this.#position & (SECTION_ALIGNMENT - 1)));
    const offset = this.#position;
    const checksum = new SectionChecksum();
    checksum.add(bytes);
    await this.#append(bytes);
    return { offset, bytes: bytes.length, checksum: checksum.finish() };
  }

  async #append(bytes: Uint8Array): Promise<void> {
    await this.#write(bytes, this.#position);
    this.#position += bytes.length;
  }

  async #write(bytes: Uint8Array, position: number): Promise<void> {
    try {
      for (let done = 0; done < bytes.length; ) {
        done += (await this.#file.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
      }
    } catch (error) {
      throw writeFailure(error, this.#path);
    }
  }
}

/** Number of bytes at the start of both terms that are equal. */
function sharedBytes(term: Uint8Array, previous: Uint8Array): number {
  const limit = Math.min(term.length, previous.length);
  let shared = 0;
  while (shared < limit && term[shared] === previous[shared]) shared++;
  return shared;
}

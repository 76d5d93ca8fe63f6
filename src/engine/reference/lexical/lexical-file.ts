import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { TrawlError } from '../../../base/errors.ts';
import type { EngineAnalyser } from '../../lexical/lexical-settings.ts';
import {
  ANALYSER_NUMBERS,
  BOUND_BYTES,
  HALF_BYTE,
  HEAD_BYTES,
  HEADER_BYTES,
  MAGIC,
  PLACE_BYTES,
  TERMS_PER_BLOCK,
  VERSION,
} from './lexical-format.ts';
import { BLOCK_POSTINGS, decodeBlock, type Position, type Postings, readVarint } from './posting-block.ts';

interface Section {
  readonly offset: number;
  readonly bytes: number;
}

/** A term's entry in the dictionary: one posting, or the byte range of a list. */
type TermEntry =
  | { readonly df: 1; readonly row: number; readonly tf: number }
  | { readonly df: number; readonly list: Section };

/** A term of the file with its postings. */
export interface TermPostings {
  /** In UTF-8. */
  readonly term: Uint8Array;
  /** The postings in blocks, rows rising. */
  postings(): Generator<Postings, void>;
}

/** Reads a `.bm25` file without the native engine. Keeps the lengths and the term index in memory, reads the rest as needed. */
export class LexicalFile {
  readonly analyser: EngineAnalyser;
  readonly rows: number;
  readonly documents: number;
  readonly tokens: number;
  readonly termCount: number;
  readonly postingCount: number;
  readonly bytes: number;
  /** Length code of each row. */
  readonly lengthCodes: Uint8Array;
  readonly #path: string;
  readonly #file: number;
  /** First terms of dictionary blocks that look-ups have read. */
  readonly #firstTerms = new Map<number, Buffer>();
  /** The dictionary block of the last look-up: the next one often has the same term or a similar one. */
  #lastBlock: { readonly block: number; readonly terms: readonly { term: Buffer; entry: TermEntry }[] } | undefined;
  readonly #lists: Section;
  readonly #dictionary: Section;
  readonly #termIndex: DataView;

  /** @throws TrawlError INDEX_FILE_MISSING, INDEX_FILE_FOREIGN. */
  constructor(path: string) {
    this.#path = path;
    try {
      this.#file = openSync(path, 'r');
    } catch (cause) {
      throw new TrawlError(
        'INDEX_FILE_MISSING',
        `${path}: the file cannot be read (${(cause as Error).message}). Build it again with trawl optimize --bm25.`,
        { cause },
      );
    }
    this.bytes = fstatSync(this.#file).size;
    try {
      const header = this.#read({ offset: 0, bytes: HEADER_BYTES });
      if (Buffer.from(header.subarray(0, 8)).toString('latin1') !== MAGIC)
        throw this.#damaged('it is not a complete BM25 file (its first 8 bytes differ)');
      const view = viewOf(header);
      const version = view.getUint32(8, true);
      if (version !== VERSION)
        throw this.#damaged(`its version is ${version}, but this program reads version ${VERSION}`);
      const analyser = ANALYSER_NUMBERS[view.getUint32(12, true)];
      if (analyser === undefined) throw this.#damaged('its analyser is unknown');
      const number = (index: number): number => Number(view.getBigUint64(16 + 8 * index, true));
      const section = (index: number): Section => ({ offset: number(5 + 3 * index), bytes: number(6 + 3 * index) });
      this.analyser = analyser;
      [this.rows, this.documents, this.tokens, this.termCount] = [number(0), number(1), number(2), number(3)];
      this.postingCount = number(4);
      [this.#lists, this.#dictionary] = [section(0), section(2)];
      if (section(1).bytes !== this.rows) throw this.#damaged('its counts and its sections disagree');
      this.lengthCodes = this.#read(section(1));
      this.#termIndex = viewOf(this.#read(section(3)));
      if (this.#termIndex.byteLength !== (this.#blocks + 1) * PLACE_BYTES)
        throw this.#damaged('its counts and its sections disagree');
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  documentFrequency(term: string): number {
    return this.#find(Buffer.from(term))?.df ?? 0;
  }

  /** The term's postings in blocks, rows rising; nothing for a term that no row has. */
  *postings(term: string): Generator<Postings, void> {
    const entry = this.#find(Buffer.from(term));
    if (entry !== undefined) yield* this.#postings(entry);
  }

  /** All terms in the order of their bytes. Holds one block of the dictionary and one posting list in memory. */
  *terms(): Generator<TermPostings, void> {
    for (let block = 0; block < this.#blocks; block++) {
      for (const { term, entry } of this.#readBlock(block)) yield { term, postings: () => this.#postings(entry) };
    }
  }

  *#postings(entry: TermEntry): Generator<Postings, void> {
    if ('row' in entry) {
      yield { rows: Uint32Array.of(entry.row), tfs: Uint32Array.of(entry.tf) };
      return;
    }
    const blocks = Math.ceil(entry.df / BLOCK_POSTINGS);
    const list = this.#read({ offset: this.#lists.offset + entry.list.offset, bytes: entry.list.bytes });
    if (blocks === 1) {
      yield this.#block(list, entry.df, -1);
      return;
    }
    const heads = viewOf(list);
    const data = BOUND_BYTES + HEAD_BYTES * blocks;
    if (data > list.length) throw this.#damaged('a posting list ends inside its block heads');
    let previous = -1;
    for (let i = 0; i < blocks; i++) {
      const head = BOUND_BYTES + HEAD_BYTES * i;
      const count = Math.min(BLOCK_POSTINGS, entry.df - i * BLOCK_POSTINGS);
      const block = this.#block(list.subarray(data + heads.getUint32(head + 4, true)), count, previous);
      previous = block.rows[count - 1]!;
      if (previous !== heads.getUint32(head, true)) throw this.#damaged("a block's last row differs from its head");
      yield block;
    }
  }

  #block(bytes: Uint8Array, count: number, previous: number): Postings {
    const postings = decodeBlock(bytes, count, previous);
    if (postings === undefined || postings.rows[count - 1]! >= this.rows)
      throw this.#damaged('a block of postings cannot be decoded');
    return postings;
  }

  get #blocks(): number {
    return Math.ceil(this.termCount / TERMS_PER_BLOCK);
  }

  #place(block: number): { terms: number; lists: number } {
    const at = block * PLACE_BYTES;
    return {
      terms: Number(this.#termIndex.getBigUint64(at, true)),
      lists: Number(this.#termIndex.getBigUint64(at + 8, true)),
    };
  }

  #find(term: Buffer): TermEntry | undefined {
    let [low, high] = [0, this.#blocks];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (Buffer.compare(this.#firstTerm(middle), term) <= 0) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return undefined;
    if (this.#lastBlock?.block !== low - 1) this.#lastBlock = { block: low - 1, terms: this.#readBlock(low - 1) };
    return this.#lastBlock.terms.find((entry) => entry.term.equals(term))?.entry;
  }

  #firstTerm(block: number): Buffer {
    const known = this.#firstTerms.get(block);
    if (known !== undefined) return known;
    const { term } = this.#readBlock(block)[0]!;
    this.#firstTerms.set(block, term);
    return term;
  }

  /** The terms of a block of the dictionary. */
  #readBlock(block: number): { term: Buffer; entry: TermEntry }[] {
    const [place, next] = [this.#place(block), this.#place(block + 1)];
    const bytes = this.#read({ offset: this.#dictionary.offset + place.terms, bytes: next.terms - place.terms });
    const at: Position = { bytes, offset: 0 };
    const count = Math.min(TERMS_PER_BLOCK, this.termCount - block * TERMS_PER_BLOCK);
    const terms: { term: Buffer; entry: TermEntry }[] = [];
    let term = Buffer.alloc(0);
    let list = place.lists;
    for (let i = 0; i < count; i++) {
      const sizes = this.#byte(at);
      const shared = this.#size(sizes >> 4, at);
      const size = this.#size(sizes & HALF_BYTE, at);
      if (shared > term.length || size > bytes.length - at.offset) throw this.#damaged('its dictionary is truncated');
      term = Buffer.concat([term.subarray(0, shared), bytes.subarray(at.offset, at.offset + size)]);
      at.offset += size;
      const df = this.#number(at);
      const entry: TermEntry =
        df > 1
          ? { df, list: { offset: list, bytes: this.#number(at) } }
          : { df: 1, row: this.#number(at), tf: df === 0 ? 1 : this.#number(at) + 1 };
      if ('list' in entry) list += entry.list.bytes;
      terms.push({ term, entry });
    }
    return terms;
  }

  #byte(at: Position): number {
    const byte = at.bytes[at.offset++];
    if (byte === undefined) throw this.#damaged('its dictionary is truncated');
    return byte;
  }

  /** The number of bytes that half a byte gives, with the varint that continues it. */
  #size(half: number, at: Position): number {
    return half < HALF_BYTE ? half : half + this.#number(at);
  }

  #number(at: Position): number {
    const value = readVarint(at);
    if (value === undefined) throw this.#damaged('its dictionary is truncated');
    return value;
  }

  #read({ offset, bytes }: Section): Uint8Array {
    if (offset < 0 || bytes < 0 || offset + bytes > this.bytes)
      throw this.#damaged(`a section ends past the file's ${this.bytes} bytes`);
    const buffer = new Uint8Array(bytes);
    for (let done = 0; done < bytes; ) {
      const read = readSync(this.#file, buffer, done, bytes - done, offset + done);
      if (read === 0) throw this.#damaged('it became shorter while it was read');
      done += read;
    }
    return buffer;
  }

  #damaged(what: string): TrawlError {
    return new TrawlError('INDEX_FILE_FOREIGN', `${this.#path}: ${what}. Build it again with trawl optimize --bm25.`, {
      details: { path: this.#path },
    });
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

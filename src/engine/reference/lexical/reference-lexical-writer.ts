import { throwIfCancelled } from '../../../base/abort.ts';
import { compareUtf8 } from '../../../base/comparable-text.ts';
import { TrawlError } from '../../../base/errors.ts';
import { TimeSlice } from '../../../base/time-slice.ts';
import { type Analyse, analyser } from '../../lexical/analysis/analysers.ts';
import { lengthCode } from '../../lexical/bm25.ts';
import type { EngineAnalyser } from '../../lexical/lexical-settings.ts';
import type { LexicalWriter } from '../../lexical/lexical-writer.ts';
import type { LexicalFileCounts } from '../../native/lexical-functions.ts';
import { doubled } from '../../typed-arrays.ts';
import { type TermPostings, writeLexicalFile } from './lexical-file-writer.ts';

/** Largest number of postings of a file, which need about 20 bytes of memory each. */
const MAX_POSTINGS = 2 ** 26;
/** Largest number of terms of a file; a Map holds no more than 2^24 entries. */
const MAX_TERMS = 16_000_000;

/**
 * Writes an inverted index in plain TypeScript, with the same bytes as the native engine. It holds all postings in memory, so
 * it refuses more than 67,108,864 postings or 16,000,000 terms.
 */
export class ReferenceLexicalWriter implements LexicalWriter {
  readonly #path: string;
  readonly #name: EngineAnalyser;
  readonly #analyse: Analyse;
  readonly #limits: { readonly postings: number; readonly terms: number };
  readonly #postings = new MemoryPostings();
  #isBusy = false;

  /** @param limits smaller limits, for tests. */
  constructor(path: string, name: EngineAnalyser, { postings = MAX_POSTINGS, terms = MAX_TERMS } = {}) {
    this.#path = path;
    this.#name = name;
    this.#analyse = analyser(name);
    this.#limits = { postings, terms };
  }

  append(texts: readonly string[], signal?: AbortSignal): Promise<void> {
    return this.#alone(async () => {
      const slice = new TimeSlice(signal);
      for (const text of texts) {
        throwIfCancelled(signal);
        // Through UTF-8, as in the native engine, which replaces lone surrogates.
        this.#postings.addRow(this.#analyse(Buffer.from(text).toString()));
        this.#checkLimits();
        if (slice.isOver) await slice.yield();
      }
    });
  }

  finish(signal?: AbortSignal): Promise<LexicalFileCounts> {
    return this.#alone(() => {
      throwIfCancelled(signal);
      return writeLexicalFile(this.#path, this.#name, this.#postings, signal);
    });
  }

  abandon(): void {}

  #checkLimits(): void {
    for (const what of ['postings', 'terms'] as const) {
      const limit = this.#limits[what];
      if (this.#postings[what] <= limit) continue;
      throw new TrawlError(
        'ENGINE_MISSING',
        `${this.#path}: the inverted index has more than ${limit.toLocaleString('en')} ${what}, which only the native engine can write. ` +
          'Install a C++ compiler and run npm run build, or build the index in smaller shards (--shard-rows).',
        { details: { path: this.#path, limit } },
      );
    }
  }

  async #alone<T>(call: () => Promise<T>): Promise<T> {
    if (this.#isBusy) throw new TypeError('The writer is still busy with the call before.');
    this.#isBusy = true;
    try {
      return await call();
    } finally {
      this.#isBusy = false;
    }
  }
}

/** The postings of rows in memory, which are added row by row and read term by term. */
class MemoryPostings {
  tokens = 0;
  readonly #numbers = new Map<string, number>();
  /** Of each posting, in the order of the rows: the term's number, the row and tf. */
  #termOf = new Uint32Array(1024);
  #rowOf = new Uint32Array(1024);
  #tfOf = new Uint32Array(1024);
  #count = 0;
  #lengthCodes = new Uint8Array(1024);
  #rows = 0;

  get terms(): number {
    return this.#numbers.size;
  }

  get postings(): number {
    return this.#count;
  }

  /** Length code of each row. */
  get lengthCodes(): Uint8Array {
    return this.#lengthCodes.subarray(0, this.#rows);
  }

  addRow(terms: readonly string[]): void {
    const postingOf = new Map<string, number>();
    for (const term of terms) {
      const known = postingOf.get(term);
      if (known !== undefined) {
        this.#tfOf[known]!++;
        continue;
      }
      postingOf.set(term, this.#count);
      this.#add(term);
    }
    if (this.#rows === this.#lengthCodes.length) this.#lengthCodes = doubled(this.#lengthCodes);
    this.#lengthCodes[this.#rows++] = lengthCode(terms.length);
    this.tokens += terms.length;
  }

  /** The terms as UTF-8, in the order of these bytes, with their postings. */
  *byTerm(): Generator<TermPostings, void> {
    // A counting sort by term, which keeps the order of the rows.
    const ends = new Uint32Array(this.terms + 1);
    for (let i = 0; i < this.#count; i++) ends[this.#termOf[i]! + 1]!++;
    for (let term = 0; term < this.terms; term++) ends[term + 1]! += ends[term]!;
    const next = ends.slice(0, -1);
    const rows = new Uint32Array(this.#count);
    const tfs = new Uint32Array(this.#count);
    for (let i = 0; i < this.#count; i++) {
      const at = next[this.#termOf[i]!]!++;
      rows[at] = this.#rowOf[i]!;
      tfs[at] = this.#tfOf[i]!;
    }
    for (const term of [...this.#numbers.keys()].sort(compareUtf8)) {
      const number = this.#numbers.get(term)!;
      const [begin, end] = [ends[number]!, ends[number + 1]!];
      yield { term: Buffer.from(term), postings: { rows: rows.subarray(begin, end), tfs: tfs.subarray(begin, end) } };
    }
  }

  #add(term: string): void {
    let number = this.#numbers.get(term);
    if (number === undefined) {
      number = this.#numbers.size;
      this.#numbers.set(term, number);
    }
    if (this.#count === this.#termOf.length) {
      [this.#termOf, this.#rowOf, this.#tfOf] = [doubled(this.#termOf), doubled(this.#rowOf), doubled(this.#tfOf)];
    }
    this.#termOf[this.#count] = number;
    this.#rowOf[this.#count] = this.#rows;
    this.#tfOf[this.#count++] = 1;
  }
}

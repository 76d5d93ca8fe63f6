import type { Postings } from './posting-block.ts';

interface TermWithPostings {
  /** UTF-8. */
  readonly term: Uint8Array;
  readonly postings: Postings;
}

/** The postings of rows in memory, which are added row by row and read term by term. */
export class MemoryPostings {
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

  get count(): number {
    return this.#count;
  }

  get lengthCodes(): Uint8Array {
    return this.#lengthCodes.subarray(0, this.#rows);
  }

  addRow(terms: readonly string[], lengthCode: number): void {
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
    if (this.#rows === this.#lengthCodes.length) this.#lengthCodes = grown(this.#lengthCodes, Uint8Array);
    this.#lengthCodes[this.#rows++] = lengthCode;
    this.tokens += terms.length;
  }

  /** The terms in the order of their UTF-8 bytes. */
  *byTerm(): Generator<TermWithPostings, void> {
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
    for (const term of [...this.#numbers.keys()].sort(byCodePoints)) {
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
      this.#termOf = grown(this.#termOf, Uint32Array);
      this.#rowOf = grown(this.#rowOf, Uint32Array);
      this.#tfOf = grown(this.#tfOf, Uint32Array);
    }
    this.#termOf[this.#count] = number;
    this.#rowOf[this.#count] = this.#rows;
    this.#tfOf[this.#count++] = 1;
  }
}

function grown<T extends Uint8Array | Uint32Array>(values: T, Type: new (length: number) => T): T {
  const larger = new Type(2 * values.length);
  larger.set(values);
  return larger;
}

/** The order of UTF-8 bytes, which is the order of code points. UTF-16 units sort surrogates before U+E000 to U+FFFF. */
function byCodePoints(a: string, b: string): number {
  const limit = Math.min(a.length, b.length);
  for (let i = 0; i < limit; i++) {
    const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (left !== right) return sortKey(left) - sortKey(right);
  }
  return a.length - b.length;
}

function sortKey(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}

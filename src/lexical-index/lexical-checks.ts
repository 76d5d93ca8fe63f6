import type { Bm25Parameters } from './bm25.ts';
import type { LexicalRequest } from './lexical-index.ts';

/** @throws RangeError if k, k1 or b is out of range, or the filter does not cover `rows` rows. */
export function checkLexicalRequest({ k, filter }: LexicalRequest, parameters: Bm25Parameters, rows: number): void {
  if (!Number.isSafeInteger(k) || k < 1) throw new RangeError(`k must be a positive integer, but is ${k}.`);
  checkParameters(parameters);
  if (filter !== undefined && filter.rows !== rows)
    throw new RangeError(`The filter covers ${filter.rows} rows, but the index has ${rows}.`);
}

/** @throws RangeError */
export function checkParameters({ k1, b }: Bm25Parameters): void {
  if (!Number.isFinite(Math.fround(k1)) || k1 < 0) throw new RangeError(`k1 must be 0 or larger, but is ${k1}.`);
  if (!(b >= 0 && b <= 1)) throw new RangeError(`b must be from 0 to 1, but is ${b}.`);
}

/** @throws RangeError */
export function checkRows(explained: readonly number[], rows: number): void {
  const wrong = explained.find((row) => !Number.isInteger(row) || row < 0 || row >= rows);
  if (wrong !== undefined) throw new RangeError(`A row is ${wrong}, but the index has rows 0 to ${rows - 1}.`);
}

import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { RowCondition } from '../published/candidate-source.ts';
import { ROW_FIELD } from '../published/published-row.ts';

/** Rows of one character: six bits, the lowest row first, as the code of the character less 48. */
const ROWS_A_CHARACTER = 6;
const ROWS_ALIGNED = 24;
const FIRST_CODE = 48;

const SEARCHES_A_CALL = 32;
/** Characters of the conditions of a call, less than OpenSearch's limit of a request (100 MB). */
const TEXT_A_CALL = 2 ** 25;

/** Whether a row is in the set of `params.set`, whose first row is `params.first`. Painless has no table for base64. */
const IN_SET = `long i = doc['${ROW_FIELD}'].value - (long) params.first;
return (((int) params.set.charAt((int) (i / ${ROWS_A_CHARACTER}L)) - ${FIRST_CODE}) >> (int) (i % ${ROWS_A_CHARACTER}L) & 1) == 1;`;

export function rowQuery(condition: RowCondition): object {
  switch (condition.type) {
    case 'all':
      return { match_all: {} };
    case 'in':
      return { terms: { [ROW_FIELD]: condition.rows } };
    case 'not-in':
      return { bool: { must_not: { terms: { [ROW_FIELD]: condition.rows } } } };
    case 'range':
      return rangeQuery(condition.first, condition.end);
    case 'bitmap': {
      const first = condition.first - (condition.first % ROWS_ALIGNED);
      const params = { first, set: setText(condition.set, first, condition.end) };
      const inSet = { script: { script: { lang: 'painless', source: IN_SET, params } } };
      return { bool: { filter: [rangeQuery(condition.first, condition.end), inSet] } };
    }
    case 'filter':
      throw new TypeError('OpenSearch takes no expressions.');
  }
}

/** The number of searches of one call with this condition, ≥ 1 and otherwise at most `limit`. */
export function searchesAtOnce(condition: RowCondition | undefined, limit: number): number {
  if (condition?.type !== 'bitmap') return Math.max(1, Math.min(SEARCHES_A_CALL, limit));
  const characters = Math.ceil((condition.end - condition.first) / ROWS_A_CHARACTER);
  return Math.max(1, Math.min(SEARCHES_A_CALL, limit, Math.floor(TEXT_A_CALL / Math.max(1, characters))));
}

function rangeQuery(first: number, end: number): object {
  return { range: { [ROW_FIELD]: { gte: first, lt: end } } };
}

/** The rows of [first, end) in a set as text; `first` is a multiple of 24. */
function setText(set: RowBitmap, first: number, end: number): string {
  const { bytes } = set;
  const words = Math.ceil((end - first) / ROWS_ALIGNED);
  const codes = Buffer.alloc(words * 4);
  for (let word = 0, at = first / 8; word < words; word++, at += 3) {
    const bits = bytes[at]! | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16);
    for (let c = 0; c < 4; c++) codes[word * 4 + c] = FIRST_CODE + ((bits >> (c * ROWS_A_CHARACTER)) & 63);
  }
  return codes.toString('latin1');
}

import { TrawlError } from '../../base/errors.ts';
import { firstNonFinite } from '../first-non-finite.ts';
import type { SearchRequest, SearchResult } from './vector-index.ts';

/** @throws TrawlError DIMENSION_MISMATCH, NON_FINITE_QUERY; RangeError for a k or count out of range. */
export function checkSearchRequest(request: SearchRequest, dimension: number): void {
  const { queries, count, k } = request;
  if (!Number.isSafeInteger(k) || k < 1) throw new RangeError(`k is ${k}; it must be a whole number from 1.`);
  if (!Number.isSafeInteger(count) || count < 0)
    throw new RangeError(`count is ${count}; it must be a whole number from 0.`);
  if (queries.length !== count * dimension) {
    throw new TrawlError(
      'DIMENSION_MISMATCH',
      `${count} queries of ${dimension} dimensions are ${count * dimension} values, but ${queries.length} were given.`,
    );
  }
  const bad = firstNonFinite(queries);
  if (bad >= 0) {
    const query = Math.floor(bad / dimension);
    const column = bad % dimension;
    throw new TrawlError(
      'NON_FINITE_QUERY',
      `Query ${query} has ${queries[bad]} in column ${column}; values must be finite.`,
      { details: { query, column } },
    );
  }
}

/** @throws RangeError if the filter has another number of rows than the index. */
export function checkFilter({ filter }: SearchRequest, rows: number): void {
  if (filter === undefined || filter.rows === rows) return;
  throw new RangeError(`The filter covers ${filter.rows} rows, the index has ${rows}.`);
}

/** @throws TrawlError SCORE_OVERFLOW if a score exceeds the range of float32, which responses use. */
export function checkScoresFit(result: SearchResult, k: number): void {
  for (let query = 0; query < result.counts.length; query++) {
    for (let i = 0; i < result.counts[query]!; i++) {
      const score = result.scores[query * k + i]!;
      if (!Number.isFinite(Math.fround(score))) {
        throw new TrawlError(
          'SCORE_OVERFLOW',
          `The score ${score} of query ${query} and row ${result.rows[query * k + i]} does not fit float32. Scale the vectors down.`,
          { details: { query } },
        );
      }
    }
  }
}

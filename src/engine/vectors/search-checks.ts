import { TrawlError } from '../../base/errors.ts';
import { firstNonFinite } from '../typed-arrays.ts';
import { placesPerQuery, type SearchRequest, type SearchResult } from './vector-index.ts';

/**
 * @param rows of the index; the filter must have as many.
 * @throws TrawlError DIMENSION_MISMATCH, NON_FINITE_QUERY; RangeError for a k or count out of range, or a filter of other rows.
 */
export function checkSearchRequest(
  { queries, count, k, filter }: SearchRequest,
  { dimension, rows }: { readonly dimension: number; readonly rows: number },
): void {
  if (!Number.isSafeInteger(k) || k < 1) throw new RangeError(`k is ${k}; it must be a whole number from 1.`);
  if (!Number.isSafeInteger(count) || count < 0)
    throw new RangeError(`count is ${count}; it must be a whole number from 0.`);
  if (queries.length !== count * dimension) {
    throw new TrawlError(
      'DIMENSION_MISMATCH',
      `${count} queries of ${dimension} dimensions are ${count * dimension} values, but ${queries.length} were given.`,
    );
  }
  if (filter !== undefined && filter.rows !== rows)
    throw new RangeError(`The filter covers ${filter.rows} rows, the index has ${rows}.`);
  const bad = firstNonFinite(queries);
  if (bad < 0) return;
  const [query, column] = [Math.floor(bad / dimension), bad % dimension];
  throw new TrawlError(
    'NON_FINITE_QUERY',
    `Query ${query} has ${queries[bad]} in column ${column}; values must be finite.`,
    {
      details: { query, column },
    },
  );
}

/** Takes the hits away from each query that has a score beyond float32, and names it in `overflows`. */
export function withoutOverflows(result: SearchResult): SearchResult {
  const { counts, rows, scores } = result;
  const places = placesPerQuery(result);
  const overflows = new Map<number, number>();
  for (const [query, count] of counts.entries()) {
    const first = query * places;
    const at = scores.subarray(first, first + count).findIndex((score) => !Number.isFinite(Math.fround(score)));
    if (at < 0) continue;
    overflows.set(query, rows[first + at]!);
    counts[query] = 0;
    rows.fill(-1, first, first + places);
    scores.fill(0, first, first + places);
  }
  return overflows.size === 0 ? result : { ...result, overflows };
}

/** @throws TrawlError SCORE_OVERFLOW if a query has a score beyond float32. */
export function checkScoresFit<Found extends Pick<SearchResult, 'overflows'>>(found: Found): Found {
  for (const overflow of found.overflows ?? []) throw scoreOverflow(overflow);
  return found;
}

/** The error of a query with a score beyond float32. */
export function scoreOverflow([query, row]: readonly [query: number, row: number]): TrawlError {
  return new TrawlError(
    'SCORE_OVERFLOW',
    `The score of query ${query} and row ${row} does not fit float32. Scale the vectors down.`,
    { details: { query } },
  );
}

import { TrawlError } from '../../base/errors.ts';
import type { QueryEmbedding } from '../calls/query-outcome.ts';

export type EmbedOutcome =
  | ({ readonly ok: true } & QueryEmbedding)
  | { readonly ok: false; readonly error: TrawlError };

export interface QueryVectors {
  /** Row-major, queries × dimension; zeros for a query that could not be embedded. */
  readonly vectors: Float32Array;
  readonly outcomes: readonly EmbedOutcome[];
}

/** The vector of a row, from row-major `vectors`: a view of them, not a copy, so it changes with them. */
export function rowOf(vectors: Float32Array, row: number, dimension: number): Float32Array {
  return vectors.subarray(row * dimension, (row + 1) * dimension);
}

export function wrongDimension(found: number, expected: number): TrawlError {
  return new TrawlError(
    'DIMENSION_MISMATCH',
    `A query vector has ${found} values, but the index has ${expected} dimensions. Embed the query with this index's encoder.`,
  );
}

/** The vectors of the embedded queries, packed without the failed ones. */
export function usableQueries(
  { vectors, outcomes }: QueryVectors,
  dimension: number,
): { vectors: Float32Array; count: number } {
  const usable = outcomes.flatMap((outcome, i) => (outcome.ok ? [i] : []));
  if (usable.length === outcomes.length) return { vectors, count: usable.length };
  const packed = new Float32Array(usable.length * dimension);
  for (const [at, i] of usable.entries()) packed.set(rowOf(vectors, i, dimension), at * dimension);
  return { vectors: packed, count: usable.length };
}

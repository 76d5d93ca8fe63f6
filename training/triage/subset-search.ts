import type { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { checkScoresFit } from '../../src/engine/vectors/search-checks.ts';
import { placesPerQuery, type VectorIndex } from '../../src/engine/vectors/vector-index.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import type { ScoredRow, SearchAmong } from './relevant-places.ts';

/** Queries of one search. */
const BATCH_QUERIES = 256;

/** Searches the vectors of an engine. `queries`: row-major, one row for each question. */
export function engineSearch(engine: VectorIndex, queries: Float32Array, signal: AbortSignal): SearchAmong {
  const { dimension } = engine;
  const count = queries.length / dimension;
  return async function* (filter, most): AsyncGenerator<readonly ScoredRow[], void> {
    const k = Math.min(most, Math.max(1, engine.rows));
    for (let start = 0; start < count; start += BATCH_QUERIES) {
      const part = queries.slice(start * dimension, (start + BATCH_QUERIES) * dimension);
      const found = checkScoresFit(
        await engine.search({ queries: part, count: part.length / dimension, k, filter, signal }),
      );
      const places = placesPerQuery(found);
      for (let q = 0; q < part.length / dimension; q++) {
        yield Array.from({ length: found.counts[q]! }, (_, i) => ({
          row: found.rows[q * places + i]!,
          score: found.scores[q * places + i]!,
        }));
      }
    }
  };
}

/** Searches the index of a retriever with the vectors of its own encoder. */
export function retrieverSearch(
  retriever: Retriever,
  vectors: readonly Float32Array[],
  signal: AbortSignal,
): SearchAmong {
  return async function* (rows: RowBitmap, k: number): AsyncGenerator<readonly ScoredRow[], void> {
    for (let start = 0; start < vectors.length; start += BATCH_QUERIES) {
      // The retriever's queue makes batches of them.
      const results = await Promise.all(
        vectors.slice(start, start + BATCH_QUERIES).map((vector) => retriever.nearest({ vector, k, rows, signal })),
      );
      for (const { nearest } of results) yield nearest;
    }
  };
}

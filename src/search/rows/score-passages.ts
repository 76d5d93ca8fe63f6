import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { ScoreCall, ScoreOutcome } from '../calls/score-call.ts';
import type { DenseSearch } from '../dense/dense-search.ts';
import { usableQueries } from '../dense/query-vectors.ts';
import type { LexicalSearch } from '../lexical/lexical-search.ts';
import type { Stopwatch } from '../timings.ts';
import { scoreRows } from './score-rows.ts';

interface ScopedRows {
  /** The rows of the call's scope; undefined for all rows. */
  readonly among: RowBitmap | undefined;
  /** Rows of the index, at least 1. */
  readonly indexRows: number;
}

/** The BM25 scores of the passages of a call. */
export async function scoreWords(
  { queries, maxRank, bm25, signal }: ScoreCall,
  { lexical, ...rows }: ScopedRows & { readonly lexical: LexicalSearch },
  watch: Stopwatch,
): Promise<ScoreOutcome[]> {
  const texts = queries.map(({ query }) => lexical.textOf(query, undefined));
  const scores = await scoreRows(
    (k, filter) => watch.time('search', () => lexical.search(texts, { k, bm25, filter, signal })),
    { ...rows, rows: queries.map((query) => query.rows), maxRank },
  );
  return scores.map((each) => ({ ok: true, scores: each }));
}

/** The dense scores of the passages of a call. A query that cannot be embedded fails alone. */
export async function scoreVectors(
  { queries, maxRank, truncate, signal }: ScoreCall,
  { dense, ...rows }: ScopedRows & { readonly dense: DenseSearch },
  watch: Stopwatch,
): Promise<ScoreOutcome[]> {
  const embedded = await dense.embedQueries(
    {
      queries: queries.map(({ query }) => query),
      truncate,
      signal,
    },
    watch,
  );
  const { vectors, count } = usableQueries(embedded, dense.dimension);
  const usable = queries.filter((_, i) => embedded.outcomes[i]!.ok).map((query) => query.rows);
  const scores = await scoreRows(
    (k, filter) => watch.timeQueued('search', () => dense.nearest(vectors, count, { k, filter, signal })),
    { ...rows, rows: usable, maxRank },
  );
  let next = 0;
  return embedded.outcomes.map(
    (outcome): ScoreOutcome =>
      outcome.ok ? { ok: true, scores: scores[next++]! } : { ok: false, error: outcome.error },
  );
}

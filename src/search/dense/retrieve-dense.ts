import { scoreOverflow } from '../../engine/vectors/search-checks.ts';
import { placesPerQuery, type SearchResult } from '../../engine/vectors/vector-index.ts';
import type { Hit, QueryOutcome } from '../calls/query-outcome.ts';
import type { Documents } from '../no-documents.ts';
import { hitRows } from '../rows/hit-rows.ts';
import type { ScopedCall } from '../scoped-call.ts';
import type { Stopwatch } from '../timings.ts';
import type { DenseSearch } from './dense-search.ts';
import { type QueryVectors, rowOf } from './query-vectors.ts';

/** Embeds the queries of a call, searches their vectors and fetches the passages. */
export async function retrieveDense(
  call: ScopedCall,
  { dense, passages }: { readonly dense: DenseSearch; readonly passages: Documents },
  watch: Stopwatch,
): Promise<QueryOutcome[]> {
  const { k, rows: filter, signal } = call;
  const embedded = await dense.embedQueries(call, watch);
  const found = await watch.timeQueued('search', () => dense.nearestTo(embedded, { k, filter, signal }));
  const rows = hitRows(found);
  const documents = await watch.time('fetch', () => passages.getMany(rows, signal));
  return outcomesOf({ embedded, dimension: dense.dimension, found }, documents);
}

interface DenseResults {
  readonly embedded: QueryVectors;
  readonly dimension: number;
  /** Of the queries that could be embedded. */
  readonly found: SearchResult;
}

/** `documents` are those of the hits, query after query. */
function outcomesOf({ embedded, dimension, found }: DenseResults, documents: readonly string[]): QueryOutcome[] {
  let q = 0;
  let nextDocument = 0;
  const places = placesPerQuery(found);
  return embedded.outcomes.map((outcome, i): QueryOutcome => {
    if (!outcome.ok) return { ok: false, error: outcome.error };
    const overflow = found.overflows?.get(q);
    if (overflow !== undefined) {
      q++;
      return { ok: false, error: scoreOverflow([i, overflow]) };
    }
    const hits: Hit[] = [];
    for (let at = q * places; at < q * places + found.counts[q]!; at++) {
      // Adding 0 turns −0, to which a tiny negative score rounds, into 0.
      const score = Math.fround(found.scores[at]!) + 0;
      hits.push({ row: found.rows[at]!, score, document: documents[nextDocument++]! });
    }
    const certificate = { exact: found.exact, rescored: found.certificate?.rescored[q] ?? null };
    q++;
    const { tokens, truncated, text, cut } = outcome;
    const vector = rowOf(embedded.vectors, i, dimension);
    return { ok: true, hits, tokens, truncated, text, cut, vector, certificate };
  });
}

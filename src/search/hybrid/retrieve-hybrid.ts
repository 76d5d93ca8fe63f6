import { checkScoresFit } from '../../engine/vectors/search-checks.ts';
import type { QueryOutcome } from '../calls/query-outcome.ts';
import type { DenseSearch } from '../dense/dense-search.ts';
import type { LexicalSearch } from '../lexical/lexical-search.ts';
import type { Documents } from '../no-documents.ts';
import type { ScopedCall } from '../scoped-call.ts';
import type { Stopwatch } from '../timings.ts';
import { checkedSettings, fuseResults, groupsOf, hybridOutcomes } from './hybrid-search.ts';

interface Parts {
  readonly dense: DenseSearch;
  readonly lexical: LexicalSearch;
  readonly passages: Documents;
  /** Rows of the index. */
  readonly rows: number;
}

/**
 * Hybrid search, in groups of queries that limit the memory of their lists. The words of a group are searched while its queries are
 * embedded and their vectors searched.
 */
export async function retrieveHybrid(
  call: ScopedCall,
  { dense, lexical, passages, rows: indexRows }: Parts,
  watch: Stopwatch,
): Promise<QueryOutcome[]> {
  const settings = checkedSettings(call.hybrid);
  const { bm25, rows: filter, template, signal } = call;
  const depth = Math.min(settings.depth, Math.max(1, indexRows));
  const outcomes: QueryOutcome[] = [];
  for (const queries of groupsOf(call.queries, depth)) {
    const texts = queries.map((query) => lexical.textOf(query, template));
    const searching = lexical.search(texts, { k: depth, bm25, filter, signal });
    // The encoder's error, if any, rejects the call; this one must not be unhandled then.
    searching.catch(() => undefined);
    const embedded = await dense.embedQueries({ ...call, queries }, watch);
    const [near, words] = await watch.time('search', () =>
      Promise.all([dense.nearestTo(embedded, { k: depth, filter, signal }), searching]),
    );
    checkScoresFit(near);
    watch.waited('search', near.waitedMs);
    lexical.count(queries, words);
    const fused = await watch.time('search', () => fuseResults({ near, words, embedded, depth }, settings, call));
    const rows = fused.flatMap((list) => list.rows.map(({ row }) => row));
    const documents = await watch.time('fetch', () => passages.getMany(rows, signal));
    outcomes.push(...hybridOutcomes({ fused, embedded, near, words, depth, dimension: dense.dimension }, documents));
  }
  return outcomes;
}

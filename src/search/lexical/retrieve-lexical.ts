import { TrawlError } from '../../base/errors.ts';
import type { LexicalResult } from '../../engine/lexical/lexical-index.ts';
import type { QueryOutcome } from '../calls/query-outcome.ts';
import type { ScopedCall } from '../calls/retrieve-call.ts';
import type { OneAtATime } from '../one-at-a-time.ts';
import type { Documents } from '../rows/hit-rows.ts';
import type { Stopwatch } from '../timings.ts';
import { searchByRow } from './lexical-hits.ts';
import type { LexicalSearch } from './lexical-search.ts';
import { searchPyserini } from './pyserini-search.ts';

interface Parts {
  readonly lexical: LexicalSearch;
  readonly passages: Documents;
  /** Rows of the index. */
  readonly rows: number;
  readonly longTies: OneAtATime;
}

/** The vector of a query in BM25 search. */
const NO_VECTOR = new Float32Array(0);

/** Searches the words of the queries of a call and fetches the passages. */
export async function retrieveLexical(
  call: ScopedCall,
  { lexical, passages, rows, longTies }: Parts,
  watch: Stopwatch,
): Promise<QueryOutcome[]> {
  const { queries, k, bm25, bm25Order, template, rows: filter, signal } = call;
  const texts = queries.map((query) => lexical.textOf(query, template));
  const search = (some: readonly string[], depth: number): Promise<LexicalResult> =>
    watch.time('search', () => lexical.search(some, { k: depth, bm25, filter, signal }));
  const request = { texts, k, rows, passages, longTies, watch, signal };
  const found = bm25Order === 'pyserini' ? await searchPyserini(search, request) : await searchByRow(search, request);
  lexical.count(queries, found);
  return texts.map((text, q): QueryOutcome => {
    const hits = found.lists[q]!;
    if (hits instanceof TrawlError) return { ok: false, error: hits };
    return {
      ok: true,
      hits,
      tokens: found.terms[q]!,
      truncated: false,
      text,
      cut: 'nothing',
      vector: NO_VECTOR,
      certificate: { exact: found.isExact?.[q] ?? true, rescored: null },
    };
  });
}

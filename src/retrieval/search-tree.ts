import type { LexicalFields } from '../lexical-index/lexical-fields.ts';
import type { LexicalQuery } from '../lexical-index/lexical-query.ts';
import type { PassageStore } from '../passages/passage-store.ts';
import type { RowBitmap } from '../row-bitmap.ts';
import type { LexicalLoad, TreeCall, TreeResult } from './retriever.ts';
import type { Stopwatch } from './timings.ts';

export interface TreeParts {
  readonly lexical: LexicalFields;
  /** The rows that may be found; undefined: all. */
  readonly filter: RowBitmap | undefined;
  readonly passages: PassageStore;
  readonly watch: Stopwatch;
}

/** Searches for a query tree and fetches the passages of the hits after the first `from`. */
export async function searchTree(
  { query, parameters, from, size, count, minScore, signal }: TreeCall,
  { lexical, filter, passages, watch }: TreeParts,
): Promise<Omit<TreeResult, 'timings'> & { readonly load: LexicalLoad }> {
  // The engine allocates memory for k hits.
  const k = Math.max(1, Math.min(from + size, lexical.rows));
  const found = await watch.time('search', () =>
    lexical.search({
      queries: [size === 0 && minScore === undefined ? unscored(query) : query],
      k,
      parameters,
      count,
      minScore,
      ...(filter === undefined ? {} : { filter }),
      ...(signal === undefined ? {} : { signal }),
    }),
  );
  const rows = size === 0 ? new Float64Array(0) : found.rows.subarray(from, found.counts[0]!);
  const documents = await watch.time('fetch', () => passages.getMany(rows, signal));
  return {
    hits: documents.map((document, i) => ({ row: rows[i]!, score: found.scores[from + i]!, document })),
    best: found.counts[0] === 0 ? null : found.scores[0]!,
    total: found.totals?.[0] ?? 0,
    load: { queries: 1, postings: found.postings[0]!, postingsRead: found.postingsRead[0]! },
  };
}

/** The same matches without the work of scoring them. */
function unscored(query: LexicalQuery): LexicalQuery {
  return { type: 'constant-score', query };
}

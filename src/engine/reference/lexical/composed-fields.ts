import { RunningCalls } from '../../../base/running-calls.ts';
import { analyser } from '../../lexical/analysis/analysers.ts';
import { DEFAULT_BM25 } from '../../lexical/bm25.ts';
import { checkFieldsRequest } from '../../lexical/lexical-checks.ts';
import {
  type EngineSource,
  type LexicalFields,
  type LexicalFieldsRequest,
  type LexicalFieldsResult,
  openIndexes,
} from '../../lexical/lexical-index.ts';
import type { LexicalField } from '../../lexical/lexical-settings.ts';
import { TopK } from '../../top-k.ts';
import { rewriteQuery } from './composed-rewrite.ts';
import { composedScores } from './composed-scores.ts';
import { nodesOf } from './composed-tree.ts';
import { emptyResult, ReferenceLexicalIndex, setHits } from './reference-lexical-index.ts';

/**
 * Query trees in plain TypeScript, which scores every matching row. Tests compare the native engine with it, and it answers
 * searches where the native engine could not be compiled.
 *
 * @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file.
 */
export async function referenceLexicalFields(sources: ReadonlyMap<LexicalField, EngineSource>): Promise<LexicalFields> {
  const { closeAll, ...opened } = await openIndexes(sources, (source) => new ReferenceLexicalIndex(source));
  const { indexes, rows } = opened;
  // All fields have the same analyser and live rows.
  const { liveRows, analyser: name = 'english' } = [...sources.values()][0] ?? {};
  const analyse = analyser(name);

  async function search(request: LexicalFieldsRequest): Promise<LexicalFieldsResult> {
    const { queries, k, parameters = DEFAULT_BM25, filter, signal } = request;
    const { count = 0, minScore = Number.NEGATIVE_INFINITY } = request;
    checkFieldsRequest(request, opened);
    const totals = new Float64Array(queries.length);
    const result = { ...emptyResult(queries.length, k), totals: count === 0 ? undefined : totals };
    const leastScore = Math.fround(minScore);
    const isAllowed = (row: number): boolean => liveRows?.has(row) !== false && filter?.has(row) !== false;
    for (const [q, query] of queries.entries()) {
      const terms = new Set<string>();
      const root = nodesOf(
        query,
        (_, text) => analyse(text),
        (term) => terms.add(term),
      );
      const onPostings = (postings: number): void => {
        result.postings[q]! += postings;
      };
      const scored = { rows, isAllowed, indexes, parameters, signal, onPostings };
      const best = new TopK(k);
      for (const [row, score] of await composedScores(rewriteQuery(root), scored)) {
        if (score < leastScore) continue;
        best.offer(row, score);
        totals[q] = Math.min(totals[q]! + 1, count + 1);
      }
      setHits(result, q, best, terms.size);
    }
    return result;
  }

  const calls = new RunningCalls('The index is closed.');
  return {
    ...opened,
    search: (request) => calls.run(() => search(request)),
    close: () => calls.close(closeAll),
  };
}

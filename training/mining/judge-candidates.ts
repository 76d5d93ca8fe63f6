import { isOfQuery, SearchFailure } from '../../src/search/calls/query-errors.ts';
import type { SearchSource } from '../../src/search/retriever.ts';
import type { PreparedQuery } from './query-outcome.ts';

/** Queries whose passages are scored in one call. */
const LISTS_PER_CALL = 8;

/**
 * Replaces the scores of positives and candidates by the reranker's scores, and orders the candidates by them; equal scores stay in
 * the order of the search. The ranks of the search stay. A query that the reranker refuses gets the reranker's error.
 *
 * @throws TrawlError NOT_SUPPORTED without a reranker, RERANK_TOO_LARGE; SearchFailure for any other error of a query.
 */
export async function judgeCandidates(
  retriever: SearchSource,
  queries: readonly PreparedQuery[],
  signal?: AbortSignal,
): Promise<readonly PreparedQuery[]> {
  const judged = [...queries];
  const asked = queries.flatMap(({ searched, positives }, i) => (searched.ok && positives.length > 0 ? [i] : []));
  for (let start = 0; start < asked.length; start += LISTS_PER_CALL) {
    const part = asked.slice(start, start + LISTS_PER_CALL);
    const lists = part.map((i) => {
      const { searched, positives, kept } = queries[i]!;
      return {
        query: searched.ok ? searched.text : '',
        passages: [...positives, ...kept].map(({ contents }) => contents),
      };
    });
    const { outcomes } = await retriever.rerank({ lists, signal });
    for (const [at, outcome] of outcomes.entries()) {
      const i = part[at]!;
      if (outcome.ok) judged[i] = withScores(queries[i]!, outcome.scores);
      else if (isOfQuery(outcome.error)) judged[i] = { ...queries[i]!, searched: outcome };
      else throw new SearchFailure(outcome.error, i);
    }
  }
  return judged;
}

function withScores(query: PreparedQuery, scores: Float32Array): PreparedQuery {
  const positives = query.positives.map((positive, i) => ({ ...positive, score: scores[i]! }));
  const kept = query.kept.map((candidate, i) => ({ ...candidate, score: scores[positives.length + i]! }));
  // The sort is stable.
  return { ...query, positives, kept: kept.sort((a, b) => b.score - a.score) };
}

import type { EncoderInput, TruncateSide } from '../encoder/text-encoder.ts';
import type { QueryOutcome } from './calls/query-outcome.ts';
import type { EmbeddedQuery, RetrieveQuery } from './calls/retrieve-call.ts';

export function isEmbedded(query: RetrieveQuery): query is EmbeddedQuery {
  return typeof query === 'object' && 'vector' in query;
}

/** Whether the query has no vector yet. */
export function isText(query: RetrieveQuery): query is EncoderInput {
  return !isEmbedded(query);
}

/** The query's text. */
export function inputOf(query: RetrieveQuery): EncoderInput {
  return isEmbedded(query) ? query.input : query;
}

/** The query with the vector of its outcome, or unchanged where the outcome has none. */
export function withVector(
  query: RetrieveQuery,
  outcome: QueryOutcome,
  truncate: TruncateSide | undefined,
): RetrieveQuery {
  if (isEmbedded(query) || !outcome.ok || outcome.vector === null) return query;
  const { tokens, truncated, text, cut, vector } = outcome;
  return { input: query, truncate: truncate ?? 'tail', embedding: { tokens, truncated, text, cut }, vector };
}

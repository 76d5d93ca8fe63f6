import { TrawlError } from '../../errors.ts';
import { withContents } from '../../passages/contents.ts';
import type { Hit, QueryOutcome } from '../../retrieval/retriever.ts';

/**
 * `{"result":[[…],…]}` in pieces, one list per query in the order of the queries. Passages are put in as the text they
 * are stored as. Where a query was cut to the model's limit, `truncated` lists the positions of such queries; clients
 * ignore keys they do not know.
 */
export function* resultLists(outcomes: readonly QueryOutcome[], withScores: boolean): Generator<string> {
  const truncated: number[] = [];
  yield '{"result":[';
  for (const [position, outcome] of outcomes.entries()) {
    if (!outcome.ok) throw failedQuery(outcome.error, position);
    if (outcome.truncated) truncated.push(position);
    yield position === 0 ? '[' : ',[';
    for (const [rank, hit] of outcome.hits.entries()) {
      if (rank > 0) yield ',';
      yield withScores ? scoredHit(hit) : withContents(hit.document);
    }
    yield ']';
  }
  yield truncated.length === 0 ? ']}' : `],"truncated":[${truncated.join(',')}]}`;
}

function scoredHit(hit: Hit): string {
  return `{"document":${withContents(hit.document)},"score":${JSON.stringify(hit.score)}}`;
}

/** These dialects have no error per query: one failing query fails the request. */
function failedQuery(error: TrawlError, position: number): TrawlError {
  return new TrawlError(error.code, `Query ${position}: ${error.message}`, {
    details: { ...error.details, query: position },
    cause: error,
  });
}

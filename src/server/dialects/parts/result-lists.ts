import { withContents } from '../../../index/passages/contents.ts';
import type { Hit, QueryAnswer, QueryOutcome } from '../../../search/calls/query-outcome.ts';
import { hitLists } from './search-plan.ts';

/**
 * `{"result":[[…],…]}` in pieces, one list per query. Passages are inserted as they are stored, without being parsed. If
 * queries were truncated, `truncated` has their positions, and if the reranker failed on queries, `unreranked`; clients ignore
 * unknown keys.
 *
 * @param head members before `result`, each followed by a comma.
 */
export function* resultLists(
  outcomes: readonly QueryOutcome[],
  hitText: (hit: Hit) => string,
  head = '',
): Generator<string> {
  yield `{${head}"result":[`;
  yield* hitLists(outcomes, hitText);
  yield `]${truncatedMember(outcomes)}${unrerankedMember(outcomes)}}`;
}

export function scoredHit(hit: Hit): string {
  return `{"document":${withContents(hit.document)},"score":${JSON.stringify(hit.score)}}`;
}

export function bareHit(hit: Hit): string {
  return withContents(hit.document);
}

/** `,"truncated":[…]`, or nothing if no query was truncated. */
export function truncatedMember(outcomes: readonly QueryOutcome[]): string {
  return positionsMember('truncated', outcomes, ({ truncated }) => truncated);
}

/** `,"unreranked":[…]`, or nothing if the reranker failed on no query. */
function unrerankedMember(outcomes: readonly QueryOutcome[]): string {
  return positionsMember('unreranked', outcomes, ({ rerank }) => rerank?.ok === false);
}

function positionsMember(
  name: string,
  outcomes: readonly QueryOutcome[],
  has: (outcome: QueryAnswer) => boolean,
): string {
  const positions = outcomes.flatMap((outcome, i) => (outcome.ok && has(outcome) ? [i] : []));
  return positions.length === 0 ? '' : `,"${name}":[${positions.join(',')}]`;
}

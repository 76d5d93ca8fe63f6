import { withContents } from '../../passages/contents.ts';
import type { Hit, QueryOutcome } from '../../retrieval/retriever.ts';
import { hitsOf, separated } from './search-plan.ts';

/**
 * `{"result":[[…],…]}` in pieces, one list per query in the order of the queries. Passages are put in as the text they
 * are stored as. Where a query was cut to the model's limit, `truncated` lists the positions of such queries; clients
 * ignore keys they do not know. `head` is members that go before, each with its comma.
 */
export function* resultLists(
  outcomes: readonly QueryOutcome[],
  hitText: (hit: Hit) => string,
  head = '',
): Generator<string> {
  yield `{${head}"result":[`;
  for (const [position, outcome] of outcomes.entries()) {
    const hits = hitsOf(outcome, position);
    yield position === 0 ? '[' : ',[';
    yield* separated(hits, hitText);
    yield ']';
  }
  yield `]${truncatedMember(outcomes)}}`;
}

export function scoredHit(hit: Hit): string {
  return `{"document":${withContents(hit.document)},"score":${JSON.stringify(hit.score)}}`;
}

export function bareHit(hit: Hit): string {
  return withContents(hit.document);
}

/** `,"truncated":[…]` where some queries were cut. */
export function truncatedMember(outcomes: readonly QueryOutcome[]): string {
  const positions = outcomes.flatMap((outcome, i) => (outcome.ok && outcome.truncated ? [i] : []));
  return positions.length === 0 ? '' : `,"truncated":[${positions.join(',')}]`;
}

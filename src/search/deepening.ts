import { TrawlError } from '../base/errors.ts';
import type { QueryAnswer, QueryOutcome } from './calls/query-outcome.ts';
import { type RetrieveCall, type RetrieveResult, withVector } from './calls/retrieve-call.ts';
import type { Search } from './retriever.ts';
import { addTimings } from './timings.ts';

/** Factor by which k grows from search to search. */
const DEPTH_FACTOR = 4;

export interface Deepening {
  /** Largest k. */
  readonly maxK: number;
  /** Returns the positions of the queries that need more hits. Called after each search with the current outcomes. */
  needMore(outcomes: readonly QueryOutcome[]): Promise<readonly number[]>;
}

/**
 * Retrieves `call.k` hits per query. The queries that need more are searched again with a larger k, until none needs more, `maxK` is
 * reached, or a search has returned all that the index has for the query. Each query is embedded only once.
 *
 * A query whose deeper search fails has the error as its outcome, not the hits of the search before: these are too few, although
 * the index may have more, and an answer is exact or an error. The other queries keep their answers.
 */
export async function retrieveDeepening(
  retriever: Search,
  call: RetrieveCall,
  { maxK, needMore }: Deepening,
): Promise<RetrieveResult> {
  const queries = [...call.queries];
  const first = await retriever.retrieve(call);
  let { timings } = first;
  const outcomes = [...first.outcomes];
  const depths = outcomes.map(() => call.k);
  const mayHaveMore = (i: number): boolean => {
    const outcome = outcomes[i]!;
    return depths[i]! < maxK && outcome.ok && outcome.hits.length >= depths[i]!;
  };
  for (let k = call.k; ; ) {
    const unfinished = (await needMore(outcomes)).filter(mayHaveMore);
    if (unfinished.length === 0) return { outcomes, timings };
    k = Math.min(maxK, k * DEPTH_FACTOR);
    for (const i of unfinished) queries[i] = withVector(queries[i]!, outcomes[i]!, call.truncate);
    const deeper = await retriever.retrieve({
      ...deeperCall(call, unfinished),
      queries: unfinished.map((i) => queries[i]!),
      k,
    });
    timings = addTimings(timings, deeper.timings);
    for (const [at, i] of unfinished.entries()) {
      const outcome = deeper.outcomes[at]!;
      outcomes[i] = outcome.ok ? withCost(outcome, outcomes[i]!) : failedDeeper(outcome.error, call.k, k);
      depths[i] = k;
    }
  }
}

/** The call for some of its queries, without the queries themselves. */
function deeperCall(first: RetrieveCall, unfinished: readonly number[]): RetrieveCall {
  const { asked, continues = { call: first, positions: first.queries.map((_, i) => i) }, ...call } = first;
  return {
    ...call,
    asked: asked && unfinished.map((i) => asked[i]!),
    continues: { call: continues.call, positions: unfinished.map((i) => continues.positions[i]!) },
  };
}

/** The deeper answer; its certificate also counts the rows that the earlier search rescored. */
function withCost(deeper: QueryAnswer, earlier: QueryOutcome): QueryOutcome {
  const { certificate } = deeper;
  const before = earlier.ok ? earlier.certificate.rescored : 0;
  const rescored = certificate.rescored === null || before === null ? null : certificate.rescored + before;
  return { ...deeper, certificate: { ...certificate, rescored } };
}

/** Says why more hits were searched than the client asked for. */
function failedDeeper(error: TrawlError, first: number, k: number): QueryOutcome {
  const why = `Too few of the first ${first} hits are left without repeated ones, and the search for ${k} hits failed`;
  return {
    ok: false,
    error: new TrawlError(error.code, `${why}: ${error.message}`, { details: error.details, cause: error }),
  };
}

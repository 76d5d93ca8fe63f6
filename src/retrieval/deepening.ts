import { withVector } from './embedded-query.ts';
import type {
  QueryAnswer,
  QueryCertificate,
  QueryOutcome,
  RetrieveCall,
  RetrieveResult,
  Retriever,
} from './retriever.ts';
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
 */
export async function retrieveDeepening(
  retriever: Retriever,
  call: RetrieveCall,
  { maxK, needMore }: Deepening,
): Promise<RetrieveResult> {
  const queries = [...call.queries];
  const first = await retriever.retrieve(call);
  let { timings } = first;
  const outcomes = [...first.outcomes];
  const depths = outcomes.map(() => call.k);
  const keepVector = (i: number): void => {
    queries[i] = withVector(queries[i]!, outcomes[i]!, call.truncate);
  };
  for (let k = call.k; ; ) {
    const unfinished = (await needMore(outcomes)).filter(
      (i) => depths[i]! < maxK && mayHaveMore(outcomes[i]!, depths[i]!),
    );
    if (unfinished.length === 0) return { outcomes, timings };
    k = Math.min(maxK, k * DEPTH_FACTOR);
    unfinished.forEach(keepVector);
    const deeper = await retriever.retrieve({ ...call, queries: unfinished.map((i) => queries[i]!), k });
    timings = addTimings(timings, deeper.timings);
    for (const [at, i] of unfinished.entries()) {
      outcomes[i] = withCostOf(deeper.outcomes[at]!, outcomes[i]!);
      depths[i] = k;
    }
  }
}

function mayHaveMore(outcome: QueryOutcome, depth: number): boolean {
  return outcome.ok && outcome.hits.length >= depth;
}

/** The deeper outcome; its certificate also counts the rows that the earlier search rescored. */
function withCostOf(deeper: QueryOutcome, earlier: QueryOutcome): QueryOutcome {
  if (!deeper.ok || !earlier.ok) return deeper;
  return { ...deeper, certificate: sumOf(deeper, earlier) };
}

function sumOf({ certificate: a }: QueryAnswer, { certificate: b }: QueryAnswer): QueryCertificate {
  return { ...a, rescored: a.rescored === null || b.rescored === null ? null : a.rescored + b.rescored };
}

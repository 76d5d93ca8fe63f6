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
 * Retrieves `call.k` hits per query, then searches the queries that need more again with four times the k, until each has enough
 * hits, `maxK` hits or all rows of the index. The encoder embeds each query only once.
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
    const short = (await needMore(outcomes)).filter((i) => depths[i]! < maxK && hasMore(outcomes[i]!, depths[i]!));
    if (short.length === 0) return { outcomes, timings };
    k = Math.min(maxK, k * DEPTH_FACTOR);
    short.forEach(keepVector);
    const deeper = await retriever.retrieve({ ...call, queries: short.map((i) => queries[i]!), k });
    timings = addTimings(timings, deeper.timings);
    for (const [at, i] of short.entries()) {
      outcomes[i] = withCostOf(deeper.outcomes[at]!, outcomes[i]!);
      depths[i] = k;
    }
  }
}

function hasMore(outcome: QueryOutcome, depth: number): boolean {
  return outcome.ok && outcome.hits.length >= depth;
}

/** The deeper outcome; its certificate also counts the rows that the earlier search rescored. */
function withCostOf(deeper: QueryOutcome, earlier: QueryOutcome): QueryOutcome {
  if (!deeper.ok || !earlier.ok) return deeper;
  return { ...deeper, certificate: sumOf(deeper, earlier) };
}

function sumOf({ certificate: a }: QueryAnswer, { certificate: b }: QueryAnswer): QueryCertificate {
  return { exact: true, rescored: a.rescored === null || b.rescored === null ? null : a.rescored + b.rescored };
}

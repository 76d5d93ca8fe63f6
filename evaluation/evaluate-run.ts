import { TrawlError } from '../src/errors.ts';
import { answerMatcher } from './answer-match.ts';
import type { Judgements, QueryJudgements } from './judgements.ts';
import { hitAt, ndcgAt, recallAt, reciprocalRank } from './ranking-metrics.ts';
import type { RankedPassage, Run } from './run.ts';

export interface EvaluateRunInput {
  /** The queries that were asked: neither judgements nor results of any other count. */
  readonly queryIds: readonly string[];
  /** A query without an entry found nothing. */
  readonly run: Run;
  readonly judgements: Judgements;
  /** Query id → golden answers. Needs `text` in the run. */
  readonly answers?: ReadonlyMap<string, readonly string[]>;
  /** The k of recall@k and the others, each from 1. */
  readonly cutoffs: readonly number[];
}

/**
 * Metric name → value between 0 and 1. Names: `recall@k`, `ndcg@k`, `mrr@k`, `hit@k` for each cutoff, `mrr` over the
 * whole ranking, `answer_hit@k`.
 */
export type Metrics = Readonly<Record<string, number>>;

export interface Evaluation {
  readonly queries: number;
  /** Queries with judgements: those over which the ranking metrics are averaged. */
  readonly judged: number;
  /** Queries without judgements: left out of the ranking metrics. */
  readonly unjudged: number;
  /** Queries with golden answers: those over which answer hits are averaged. */
  readonly answerable: number;
  /** Means over the queries that have the metric; a metric that no query has is not there. */
  readonly means: Metrics;
  /** The metrics of each query, in the order of `queryIds`; empty for one with neither judgements nor answers. */
  readonly perQuery: ReadonlyMap<string, Metrics>;
}

/**
 * Measures a run. A judged query that found nothing counts as 0 (as `trec_eval -c` does), and so does one whose
 * judgements have no relevant passage.
 */
export function evaluateRun({ queryIds, run, judgements, answers, cutoffs }: EvaluateRunInput): Evaluation {
  checkCutoffs(cutoffs);
  const perQuery = new Map<string, Metrics>();
  let judged = 0;
  let answerable = 0;
  for (const queryId of new Set(queryIds)) {
    const results = run.get(queryId) ?? [];
    const ofQuery = judgements.get(queryId);
    const golden = answers?.get(queryId) ?? [];
    if (ofQuery !== undefined) judged += 1;
    if (golden.length > 0) answerable += 1;
    perQuery.set(queryId, {
      ...(ofQuery === undefined ? {} : rankingMetrics(results, ofQuery, cutoffs)),
      ...(golden.length === 0 ? {} : answerMetrics(queryId, results, golden, cutoffs)),
    });
  }
  const queries = perQuery.size;
  return { queries, judged, unjudged: queries - judged, answerable, means: meansOf(perQuery.values()), perQuery };
}

function rankingMetrics(
  results: readonly RankedPassage[],
  judgements: QueryJudgements,
  cutoffs: readonly number[],
): Metrics {
  const ranking = results.map(({ id }) => id);
  const metrics: Record<string, number> = {};
  for (const k of cutoffs) {
    metrics[`recall@${k}`] = recallAt(ranking, judgements, k);
    metrics[`ndcg@${k}`] = ndcgAt(ranking, judgements, k);
    metrics[`mrr@${k}`] = reciprocalRank(ranking, judgements, k);
    metrics[`hit@${k}`] = hitAt(ranking, judgements, k);
  }
  metrics.mrr = reciprocalRank(ranking, judgements);
  return metrics;
}

function answerMetrics(
  queryId: string,
  results: readonly RankedPassage[],
  answers: readonly string[],
  cutoffs: readonly number[],
): Metrics {
  const matches = answerMatcher(answers);
  const deepest = Math.max(0, ...cutoffs);
  const first = results.slice(0, deepest).findIndex(({ text }) => {
    if (text !== undefined) return matches(text);
    throw new TrawlError(
      'USAGE',
      `Answer hits need the text of the passages, and a result of query ${JSON.stringify(queryId)} has none. ` +
        'Leave the answers out, or evaluate a search rather than a run file.',
    );
  });
  return Object.fromEntries(cutoffs.map((k) => [`answer_hit@${k}`, first !== -1 && first < k ? 1 : 0]));
}

function meansOf(queries: Iterable<Metrics>): Metrics {
  const sums = new Map<string, { sum: number; count: number }>();
  for (const metrics of queries) {
    for (const [name, value] of Object.entries(metrics)) {
      const total = sums.get(name) ?? { sum: 0, count: 0 };
      total.sum += value;
      total.count += 1;
      sums.set(name, total);
    }
  }
  return Object.fromEntries(Array.from(sums, ([name, { sum, count }]) => [name, sum / count]));
}

function checkCutoffs(cutoffs: readonly number[]): void {
  const wrong = cutoffs.find((k) => !Number.isSafeInteger(k) || k < 1);
  if (wrong !== undefined) {
    throw new TrawlError('USAGE', `A cutoff is ${wrong}, expected whole numbers from 1, such as 1, 5, 10.`);
  }
}

import { usageError } from '../src/base/errors.ts';
import { answerMatcher, normalisedMatcher, substringMatcher } from '../src/search/answer-match.ts';
import type { Judgements, QueryJudgements } from './judgements.ts';
import {
  allGoldAt,
  averagePrecision,
  hitAt,
  ndcgAt,
  precisionAt,
  recallAt,
  reciprocalRank,
  rPrecision,
} from './ranking-metrics.ts';
import { titleKey } from './read-questions.ts';
import type { RankedPassage, Run } from './run.ts';

export interface EvaluateRunInput {
  /** The queries to evaluate. Results and judgements of other queries are ignored. */
  readonly queryIds: readonly string[];
  /** A query without an entry has no results. */
  readonly run: Run;
  readonly judgements: Judgements;
  /** Query id → title key (`titleKey`) → grade. Requires `title` in the run; passages without one have no page. */
  readonly titleJudgements?: Judgements;
  /** Query id → golden answers. Requires `text` in the run. */
  readonly answers?: ReadonlyMap<string, readonly string[]>;
  /**
   * For questions that were searched with several queries, under the same ids as in `run`: the list of each query. `run` has the lists
   * fused; the `union_` metrics are computed from the lists.
   */
  readonly lists?: ReadonlyMap<string, readonly (readonly RankedPassage[])[]>;
  /** Values of k for the metrics at a rank; whole numbers from 1. */
  readonly cutoffs: readonly number[];
}

/**
 * Metric name → value between 0 and 1; larger is better. For each cutoff k:
 *
 * - of judged passages `recall@k`, `precision@k`, `all_gold@k`, `ndcg@k`, `map@k`, `mrr@k` and `hit@k`,
 * - of judged pages `title_recall@k`, `title_all_gold@k` and `title_hit@k`: the pages among the first k passages,
 * - of golden answers `answer_hit@k` and `answer_substring@k`, in the texts of the passages; `answer_normalised@k`, in titles and texts.
 *
 * With several queries also the union of their lists, the first k passages of each: `union_recall@k`, `union_all_gold@k`,
 * `union_title_recall@k`, `union_title_all_gold@k` and `union_answer_hit@k`.
 *
 * Over the whole ranking: `mrr`, `map` and `r_precision`.
 */
export type Metrics = Readonly<Record<string, number>>;

export type Evaluation = ReturnType<typeof evaluateRun>;

/**
 * Computes the metrics of a run. A judged query without results, or without a relevant passage, counts as 0 (as with
 * `trec_eval -c`).
 *
 * @throws TrawlError USAGE for invalid cutoffs, and for answers if the run has no text.
 */
export function evaluateRun(input: EvaluateRunInput) {
  const { queryIds, run, judgements, titleJudgements, answers, lists = new Map(), cutoffs } = input;
  const wrong = cutoffs.find((k) => !Number.isSafeInteger(k) || k < 1);
  if (wrong !== undefined)
    throw usageError(`The cutoff ${wrong} is invalid. Cutoffs must be whole numbers from 1, such as 1, 5, 10.`);
  /** The metrics of each query, in the order of `queryIds`; empty for a query with neither judgements nor answers. */
  const perQuery = new Map<string, Metrics>();
  /** Queries with judgements of passages, of pages, and with golden answers: the metrics of these are means over them. */
  let [judged, titleJudged, answerable] = [0, 0, 0];
  for (const queryId of new Set(queryIds)) {
    const results = run.get(queryId) ?? [];
    const ofQuery = judgements.get(queryId);
    const titles = titleJudgements?.get(queryId);
    const golden = answers?.get(queryId) ?? [];
    if (ofQuery !== undefined) judged += 1;
    if (titles !== undefined) titleJudged += 1;
    if (golden.length > 0) answerable += 1;
    perQuery.set(queryId, {
      ...(ofQuery && rankingMetrics(idsOf(results), ofQuery, cutoffs)),
      ...(titles && metricsAt(pagesOf(results), titles, cutoffs, ['recall', 'all_gold', 'hit'], 'title_')),
      ...(golden.length > 0 && answerMetrics(queryId, results, golden, cutoffs)),
      ...(lists.size > 0 &&
        unionMetrics(queryId, lists.get(queryId) ?? [results], { judgements: ofQuery, titles, golden, cutoffs })),
    });
  }
  const queries = perQuery.size;
  const means = meansOf(perQuery.values());
  return { queries, judged, unjudged: queries - judged, titleJudged, answerable, means, perQuery };
}

/** The metrics of the first k ids of a ranking. */
const AT_RANK = {
  recall: recallAt,
  precision: precisionAt,
  all_gold: allGoldAt,
  ndcg: ndcgAt,
  map: averagePrecision,
  mrr: reciprocalRank,
  hit: hitAt,
} as const;
const RANK_METRICS = Object.keys(AT_RANK) as (keyof typeof AT_RANK)[];

function metricsAt(
  ids: readonly string[],
  judgements: QueryJudgements,
  cutoffs: readonly number[],
  names: readonly (keyof typeof AT_RANK)[],
  prefix = '',
): Metrics {
  const metrics: Record<string, number> = {};
  for (const k of cutoffs) {
    for (const name of names) metrics[`${prefix}${name}@${k}`] = AT_RANK[name](ids, judgements, k);
  }
  return metrics;
}

function rankingMetrics(ranking: readonly string[], judgements: QueryJudgements, cutoffs: readonly number[]): Metrics {
  return {
    ...metricsAt(ranking, judgements, cutoffs, RANK_METRICS),
    mrr: reciprocalRank(ranking, judgements),
    map: averagePrecision(ranking, judgements),
    r_precision: rPrecision(ranking, judgements),
  };
}

function idsOf(results: readonly RankedPassage[]): string[] {
  return results.map(({ id }) => id);
}

/** The pages of passages. No title key is empty, so a passage without title counts for no page. */
function pagesOf(results: readonly RankedPassage[]): string[] {
  return results.map(({ title }) => titleKey(title ?? ''));
}

function answerMetrics(
  queryId: string,
  results: readonly RankedPassage[],
  answers: readonly string[],
  cutoffs: readonly number[],
): Metrics {
  const passages = results.slice(0, Math.max(0, ...cutoffs)).map(({ title = '', text }) => {
    if (text !== undefined) return { text, contents: `${title}\n${text}` };
    throw usageError(
      `answer_hit@k needs the text of the passages, and a result of query ${JSON.stringify(queryId)} has no text. ` +
        'Omit the answers, or evaluate a search instead of a run file.',
    );
  });
  const metrics: Record<string, number> = {};
  for (const [name, part, matches] of [
    ['answer_hit', 'text', answerMatcher(answers)],
    ['answer_substring', 'text', substringMatcher(answers)],
    ['answer_normalised', 'contents', normalisedMatcher(answers)],
  ] as const) {
    const first = passages.findIndex((passage) => matches(passage[part]));
    for (const k of cutoffs) metrics[`${name}@${k}`] = first !== -1 && first < k ? 1 : 0;
  }
  return metrics;
}

interface JudgedQuery {
  readonly judgements: QueryJudgements | undefined;
  readonly titles: QueryJudgements | undefined;
  readonly golden: readonly string[];
  readonly cutoffs: readonly number[];
}

function unionMetrics(
  queryId: string,
  lists: readonly (readonly RankedPassage[])[],
  { judgements, titles, golden, cutoffs }: JudgedQuery,
): Metrics {
  const metrics: Record<string, number> = {};
  for (const k of cutoffs) {
    const shown = lists.flatMap((list) => list.slice(0, k));
    const all = Math.max(1, shown.length);
    for (const [name, ids, relevant] of [
      ['union', idsOf(shown), judgements],
      ['union_title', pagesOf(shown), titles],
    ] as const) {
      if (relevant === undefined) continue;
      metrics[`${name}_recall@${k}`] = recallAt(ids, relevant, all);
      metrics[`${name}_all_gold@${k}`] = allGoldAt(ids, relevant, all);
    }
    if (golden.length > 0)
      metrics[`union_answer_hit@${k}`] = answerMetrics(queryId, shown, golden, [all])[`answer_hit@${all}`]!;
  }
  return metrics;
}

/** The metrics of groups of the queries, in the order of their first query. Queries without a group are left out. */
export function metricsByGroup(
  perQuery: ReadonlyMap<string, Metrics>,
  groupOf: (queryId: string) => string | undefined,
): Map<string, Map<string, Metrics>> {
  const groups = new Map<string, Map<string, Metrics>>();
  for (const [queryId, metrics] of perQuery) {
    const group = groupOf(queryId);
    if (group === undefined) continue;
    const members = groups.get(group);
    if (members === undefined) groups.set(group, new Map([[queryId, metrics]]));
    else members.set(queryId, metrics);
  }
  return groups;
}

/** Mean of each metric over the queries that have it. */
export function meansOf(queries: Iterable<Metrics>): Metrics {
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

import { type Evaluation, type Metrics, meansOf, metricsByGroup } from '../../evaluation/evaluate-run.ts';
import { type MetricIntervals, metricIntervals } from '../../evaluation/metric-intervals.ts';
import { formatNumberOf } from '../../src/base/format.ts';

export interface EvalContext {
  /** The format of the questions, for people. */
  readonly source: string;
  /** Question id → type, for the questions that have one. */
  readonly types: ReadonlyMap<string, string>;
  /** The id of the question that a query id stands for: the same but for trajectories. */
  questionOf(id: string): string;
  /** Of the draws of the intervals. */
  readonly seed: number;
}

/** The report of `trawl eval --json`. */
export function evalJson(evaluation: Evaluation, context: EvalContext): object {
  const { queries, judged, unjudged, titleJudged, answerable, means, perQuery } = evaluation;
  const { source, seed, questionOf } = context;
  const groups = groupsOf(evaluation, context);
  return {
    source,
    queries,
    ...questionCount(perQuery.keys(), context),
    judged,
    unjudged,
    titleJudged,
    answerable,
    metrics: means,
    intervals: metricIntervals(perQuery, seed, questionOf),
    seed,
    ...(groups.length === 0
      ? {}
      : {
          byType: Object.fromEntries(
            groups.map(({ type, queries, questions, means, intervals }) => [
              type,
              { queries, ...questions, metrics: means, intervals },
            ]),
          ),
        }),
  };
}

/** The report of `trawl eval` in a terminal: a table of metrics by cutoff, then one for each type of question. */
export function evalText(evaluation: Evaluation, context: EvalContext): string {
  const { means, perQuery } = evaluation;
  return [
    countLine(evaluation, context),
    ...metricTable(means, metricIntervals(perQuery, context.seed, context.questionOf)),
    ...groupsOf(evaluation, context).flatMap(({ type, queries, questions, means, intervals }) => [
      '',
      `${type}: ${queries === 1 ? '1 query' : `${queries} queries`}${ofQuestions(questions)}`,
      ...metricTable(means, intervals),
    ]),
  ].join('\n');
}

/** How many questions there are, and what is known of them. */
export function countLine(
  { queries, judged, unjudged, titleJudged, answerable, perQuery }: Evaluation,
  context: EvalContext,
): string {
  return [
    `queries ${queries}${ofQuestions(questionCount(perQuery.keys(), context))} (${context.source})`,
    `judged ${judged}${unjudged > 0 && judged > 0 ? ` (${unjudged} without judgements skipped)` : ''}`,
    ...(titleJudged > 0 ? [`judged by page ${titleJudged}`] : []),
    `with answers ${answerable}`,
  ].join(', ');
}

/** The number of questions, if some have several trajectories. */
function questionCount(ids: Iterable<string>, { questionOf }: EvalContext): { readonly questions?: number } {
  const all = [...ids];
  const questions = new Set(all.map(questionOf)).size;
  return questions === all.length ? {} : { questions };
}

function ofQuestions({ questions }: { readonly questions?: number }): string {
  return questions === undefined ? '' : ` of ${formatNumberOf(questions, 'question')}`;
}

function groupsOf({ perQuery }: Evaluation, context: EvalContext) {
  const { types, seed, questionOf } = context;
  return Array.from(
    metricsByGroup(perQuery, (id) => types.get(id)),
    ([type, members]) => ({
      type,
      queries: members.size,
      questions: questionCount(members.keys(), context),
      means: meansOf(members.values()),
      intervals: metricIntervals(members, seed, questionOf),
    }),
  );
}

/** Metrics with a cutoff, a row each with a column for each cutoff; then those of the whole ranking. With the intervals of the means. */
function metricTable(means: Metrics, intervals: MetricIntervals): string[] {
  const names = Object.keys(means).map((name) => {
    const [metric, cutoff] = name.split('@');
    return { metric: metric!, cutoff };
  });
  const cutoffs = [...new Set(names.flatMap(({ cutoff }) => (cutoff === undefined ? [] : [cutoff])))];
  if (names.length === 0) return [];
  // Without a cutoff, mrr and map are those of the largest cutoff: no more passages were retrieved.
  const atCutoffs = new Set(names.flatMap(({ metric, cutoff }) => (cutoff === undefined ? [] : [metric])));
  const rows = [...new Set(names.map(({ metric }) => metric))];
  const width = Math.max(...rows.map((metric) => metric.length));
  const line = (first: string, cells: readonly string[]) =>
    [first.padEnd(width), ...cells.map((cell) => cell.padEnd(CELL_WIDTH))].join('  ').trimEnd();
  const cell = (name: string): string => (name in means ? valueAndInterval(means[name]!, intervals[name]) : '');
  return [
    line(
      '',
      cutoffs.map((cutoff) => `@${cutoff}`),
    ),
    ...rows.map((metric) =>
      atCutoffs.has(metric)
        ? line(
            metric,
            cutoffs.map((cutoff) => cell(`${metric}@${cutoff}`)),
          )
        : line(metric, [cell(metric)]),
    ),
  ];
}

/** `0.7412 [0.712, 0.769]`. */
const CELL_WIDTH = 21;

function valueAndInterval(value: number, interval: MetricIntervals[string] | undefined): string {
  const limits =
    interval === undefined || interval === null ? '' : ` [${interval.low.toFixed(3)}, ${interval.high.toFixed(3)}]`;
  return `${value.toFixed(4)}${limits}`;
}

import { type MetricIntervals, metricIntervals } from '../../evaluation/compare-evaluations.ts';
import type { Evaluation, Metrics } from '../../evaluation/evaluate-run.ts';
import { answeredLine, differenceRows, latencyLine, meanRows } from '../../evaluation/report/comparison-html.ts';
import type {
  ChangedQuestion,
  Comparison,
  ComparisonReport,
  ShownPassage,
} from '../../evaluation/systems/comparison.ts';
import {
  type EvalContext,
  metricsByType,
  questionCount,
  type SearchedSystem,
} from '../../evaluation/systems/searched-system.ts';
import { formatCount, formatLine, formatNumberOf, formatTable, printable } from '../../src/base/format.ts';
import { lines } from '../output/lines.ts';

/** How a server was asked, how fast it answered, and what failed. Empty for other systems. */
export function serverLines({ server, what }: SearchedSystem): string[] {
  if (server === undefined) return [];
  const { concurrency, queriesPerRequest, requests, repeated, matchedBy, failures } = server;
  const matched = {
    id: 'matched by id',
    text: "matched by the relevant passages' texts",
    none: 'not matched with judged passages',
  };
  return [
    `${printable(what)}: ${formatNumberOf(requests, 'request')} of ${queriesPerRequest === 1 ? '1 query' : `up to ${queriesPerRequest} queries`}, ` +
      `${formatCount(concurrency)} at a time, ${formatCount(repeated)} repeated; ${matched[matchedBy ?? 'none']}`,
    latencyLine(server),
    ...Object.entries(failures).map(
      ([reason, count]) => `failed: ${formatNumberOf(count, 'search').replace(/hs$/, 'hes')}, ${printable(reason)}`,
    ),
  ];
}

/** The report of `trawl eval` in a terminal: a table of metrics by cutoff, then one for each type of question. */
export function evalText(evaluation: Evaluation, context: EvalContext): string {
  const { means, perQuery } = evaluation;
  return [
    countLine(evaluation, context),
    ...metricTable(means, metricIntervals(perQuery, context.seed, context.questionOf)),
    ...metricsByType(evaluation, context).flatMap(({ type, queries, questions, means, intervals }) => [
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
  return lines(
    `queries ${queries}${ofQuestions(questionCount(perQuery.keys(), context))} (${context.source})`,
    `judged ${judged}${unjudged > 0 && judged > 0 ? ` (${unjudged} without judgements skipped)` : ''}`,
    titleJudged > 0 && `judged by page ${titleJudged}`,
    `with answers ${answerable}`,
  ).join(', ');
}

function ofQuestions(questions: number | undefined): string {
  return questions === undefined ? '' : ` of ${formatNumberOf(questions, 'question')}`;
}

/** Metrics with a cutoff, a row each with a column for each cutoff; then metrics of the whole ranking. With the intervals of the means. */
function metricTable(means: Metrics, intervals: MetricIntervals): string[] {
  const names = Object.keys(means).map((name) => {
    const [metric, cutoff] = name.split('@');
    return { metric: metric!, cutoff };
  });
  const cutoffs = [...new Set(names.flatMap(({ cutoff }) => (cutoff === undefined ? [] : [cutoff])))];
  if (names.length === 0) return [];
  // Without a cutoff, mrr and map equal their values at the largest cutoff: no more passages were retrieved.
  const atCutoffs = new Set(names.flatMap(({ metric, cutoff }) => (cutoff === undefined ? [] : [metric])));
  const rows = [...new Set(names.map(({ metric }) => metric))];
  const width = Math.max(...rows.map((metric) => metric.length));
  const line = (first: string, ...cells: readonly string[]) =>
    [first.padEnd(width), ...cells.map((cell) => cell.padEnd(CELL_WIDTH))].join('  ').trimEnd();
  const cell = (name: string): string => (name in means ? valueAndInterval(means[name]!, intervals[name]) : '');
  return [
    line('', ...cutoffs.map((cutoff) => `@${cutoff}`)),
    ...rows.map((metric) => {
      const values = atCutoffs.has(metric) ? cutoffs.map((cutoff) => `${metric}@${cutoff}`) : [metric];
      return line(metric, ...values.map(cell));
    }),
  ];
}

/** `0.7412 [0.712, 0.769]`. */
const CELL_WIDTH = 21;

function valueAndInterval(value: number, interval: MetricIntervals[string] | undefined): string {
  const limits =
    interval === undefined || interval === null ? '' : ` [${interval.low.toFixed(3)}, ${interval.high.toFixed(3)}]`;
  return `${value.toFixed(4)}${limits}`;
}

/** The report of `trawl eval --compare` in a terminal. `width`: characters of a line of passages side by side. */
export function comparisonText(report: ComparisonReport, counts: string, width: number): string {
  const { systems, comparisons } = report;
  return lines(
    counts,
    answeredLine(report) ?? false,
    ...systems.map(
      ({ name, what, failed }) =>
        `  ${printable(name)}: ${printable(what)}${failed === 0 ? '' : `, the search of ${formatNumberOf(failed, 'question')} failed`}`,
    ),
    ...systems.map(({ name, server }) => server !== undefined && `  ${printable(name)}: ${latencyLine(server)}`),
    '',
    ...formatTable([['', ...systems.map(({ name }) => printable(name))], ...meanRows(report)]),
    ...comparisons.flatMap((comparison) => ['', ...comparisonLines(comparison, width)]),
  ).join('\n');
}

function comparisonLines({ first, second, metrics, changed }: Comparison, width: number): string[] {
  const { head, rows } = differenceRows({ metrics });
  const table = [
    `${printable(second)} against ${printable(first)}`,
    ...formatTable([head, ...rows.map(({ cells }) => cells)]),
  ];
  if (changed === null) return table;
  const { metric, better, worse, queries, most } = changed;
  const ofTrajectories = metrics[metric]!.questions !== undefined;
  const improved = ofTrajectories ? `of the trajectories ${formatCount(better)}` : formatNumberOf(better, 'question');
  return [
    ...table,
    '',
    `${metric}: ${improved} better, ${formatCount(worse)} worse, ${formatCount(queries - better - worse)} unchanged`,
    ...most.flatMap((question) => ['', ...sideBySide(question, { first, second, metric }, width)]),
  ];
}

function sideBySide(
  { id, question, query, goldTitles, goldIds, goldenAnswers, first, second }: ChangedQuestion,
  names: { readonly first: string; readonly second: string; readonly metric: string },
  width: number,
): string[] {
  const half = Math.max(20, Math.floor((width - 8) / 2));
  const gold = goldTitles.length > 0 ? goldTitles : goldIds;
  const ranks = Array.from({ length: Math.max(first.passages.length, second.passages.length) }, (_, i) => i);
  const value = (name: string, { value }: ChangedQuestion['first']): string =>
    formatLine(`${name} (${names.metric} ${value.toFixed(4)})`, half);
  return lines(
    formatLine(`${id}  ${question}`, width),
    query !== null && formatLine(`  query: ${query}`, width),
    gold.length > 0 && formatLine(`  relevant: ${gold.join(', ')}`, width),
    goldenAnswers.length > 0 && formatLine(`  answers: ${goldenAnswers.join(', ')}`, width),
    `      ${value(names.first, first).padEnd(half)}  ${value(names.second, second)}`,
    ...ranks.map((i) =>
      `${String(i + 1).padStart(4)}  ${cell(first.passages[i], half).padEnd(half)}  ${cell(second.passages[i], half)}`.trimEnd(),
    ),
  );
}

/** Relevant passages have a star. */
function cell(passage: ShownPassage | undefined, width: number): string {
  if (passage === undefined) return '';
  const { id, title, relevant, text } = passage;
  return formatLine(
    `${relevant ? '*' : ' '} ${id}${title === null ? '' : `  ${title}`}${text ? `: ${text}` : ''}`,
    width,
  );
}

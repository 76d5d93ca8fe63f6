import type { ComparedMetric } from '../../evaluation/compare-evaluations.ts';
import { formatCount, formatNumberOf, printable } from '../../src/base/format.ts';
import type { ChangedQuestion, Comparison, ComparisonReport, ShownPassage } from '../../evaluation/systems/comparison.ts';
import { latencyLine } from './server-lines.ts';

/** The report of `trawl eval --compare` in a terminal. `width`: characters of a line of passages side by side. */
export function comparisonText(report: ComparisonReport, counts: string, width: number): string {
  const { systems, comparisons } = report;
  const partial = answeredLine(report);
  return [
    counts,
    ...(partial === undefined ? [] : [partial]),
    ...systems.map(
      ({ name, what, failed }) =>
        `  ${printable(name)}: ${printable(what)}${failed === 0 ? '' : `, ${failedText(failed)}`}`,
    ),
    ...systems.flatMap(({ name, server }) =>
      server === undefined ? [] : [`  ${printable(name)}: ${latencyLine(server)}`],
    ),
    '',
    ...table([
      ['', ...systems.map(({ name }) => printable(name))],
      ...metricNames(report).map((metric) => [
        metric,
        ...systems.map(({ metrics }) => metrics[metric]?.toFixed(4) ?? '–'),
      ]),
    ]),
    ...comparisons.flatMap((comparison) => ['', ...comparisonLines(comparison, width)]),
  ].join('\n');
}

/** On what the metrics are measured, if a system failed to answer questions; undefined if none did. */
export function answeredLine({ asked, answered }: ComparisonReport): string | undefined {
  if (answered === asked) return undefined;
  return `All metrics are of the ${formatCount(answered)} of ${formatNumberOf(asked, 'question')} that every system answered.`;
}

function failedText(failed: number): string {
  return `the search of ${formatNumberOf(failed, 'question')} failed`;
}

/** The metrics of all systems, in the order of the first that has them. */
export function metricNames({ systems }: ComparisonReport): string[] {
  return [...new Set(systems.flatMap(({ metrics }) => Object.keys(metrics)))];
}

/** +0.0125 */
export function signed(value: number): string {
  const text = value.toFixed(4);
  return value > 0 ? `+${text}` : text === '-0.0000' ? '0.0000' : text;
}

/** 0.034, or < 0.001. */
export function pText(p: number): string {
  return p < 0.001 ? '< 0.001' : p.toFixed(3);
}

/** `+0.012 … +0.087` */
export function intervalText({ interval }: ComparedMetric): string {
  return interval === null ? '–' : `${signed(interval.low)} … ${signed(interval.high)}`;
}

/** How many questions are compared, and how many trajectories if a question has several. */
export function countColumns(metrics: Comparison['metrics']): {
  readonly heads: readonly string[];
  cells(metric: ComparedMetric): string[];
} {
  const several = Object.values(metrics).some(({ questions }) => questions !== undefined);
  return {
    heads: several ? ['trajectories', 'questions'] : ['questions'],
    cells: ({ queries, questions = queries }) => (several ? [queries, questions] : [queries]).map(formatCount),
  };
}

function comparisonLines({ first, second, metrics, changed }: Comparison, width: number): string[] {
  const counts = countColumns(metrics);
  const rows = Object.entries(metrics).map(([name, metric]) => [
    name,
    signed(metric.difference),
    intervalText(metric),
    pText(metric.p),
    formatCount(metric.better),
    formatCount(metric.worse),
    ...counts.cells(metric),
  ]);
  return [
    `${printable(second)} against ${printable(first)}`,
    ...table([['', 'difference', '95 % interval', 'p', 'better', 'worse', ...counts.heads], ...rows]),
    ...(changed === null
      ? []
      : [
          '',
          `${changed.metric}: ${better(changed, metrics)} better, ${formatCount(changed.worse)} worse, ` +
            `${formatCount(changed.queries - changed.better - changed.worse)} unchanged`,
          ...changed.most.flatMap((question) => [
            '',
            ...sideBySide(question, { first, second, metric: changed.metric }, width),
          ]),
        ]),
  ];
}

function better({ metric, better }: NonNullable<Comparison['changed']>, metrics: Comparison['metrics']): string {
  const ofTrajectories = metrics[metric]!.questions !== undefined;
  return ofTrajectories ? `of the trajectories ${formatCount(better)}` : formatNumberOf(better, 'question');
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
    oneLine(`${name} (${names.metric} ${value.toFixed(4)})`, half);
  return [
    oneLine(`${id}  ${question}`, width),
    ...(query === null ? [] : [oneLine(`  query: ${query}`, width)]),
    ...(gold.length === 0 ? [] : [oneLine(`  relevant: ${gold.join(', ')}`, width)]),
    ...(goldenAnswers.length === 0 ? [] : [oneLine(`  answers: ${goldenAnswers.join(', ')}`, width)]),
    `      ${value(names.first, first).padEnd(half)}  ${value(names.second, second)}`,
    ...ranks.map((i) =>
      `${String(i + 1).padStart(4)}  ${cell(first.passages[i], half).padEnd(half)}  ${cell(second.passages[i], half)}`.trimEnd(),
    ),
  ];
}

/** Relevant passages have a star. */
function cell(passage: ShownPassage | undefined, width: number): string {
  if (passage === undefined) return '';
  const { id, title, relevant, text } = passage;
  return oneLine(`${relevant ? '*' : ' '} ${id}${title === null ? '' : `  ${title}`}${text ? `: ${text}` : ''}`, width);
}

function oneLine(text: string, width: number): string {
  const line = printable(text).replaceAll(/\s+/g, (space) => (space.includes('\n') ? ' ' : space));
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`;
}

/** The first column is left-aligned. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join('  ')
      .trimEnd(),
  );
}

import { formatChange, formatCount, formatDuration, formatNumberOf, formatPercent } from '../../src/base/format.ts';
import type { RecallAt, TriageReport } from '../../training/triage/triage-model.ts';
import type { Estimate } from '../../training/triage/triage-report.ts';
import { lines } from '../output/lines.ts';

/** The report as lines for the terminal. `source`: the format of the questions. */
export function triageText(report: TriageReport, source: string): string {
  const { questions, passages, records, model, index, times, settings } = report;
  return lines(
    `${model.name} (${model.precision === null ? '' : `${model.precision}, `}${model.dimension} dimensions) on the passages of ${index.name}, generation ${index.generation}`,
    `${formatNumberOf(questions.judged, 'judged question')} of ${formatCount(questions.read)} (${source})` +
      (questions.unjudged > 0 ? ` (${formatCount(questions.unjudged)} without judgements left out)` : '') +
      (questions.missing > 0
        ? `; ${formatCount(questions.missing)} of ${formatNumberOf(questions.relevant, 'relevant passage')} are not in the index`
        : ''),
    `pool: ${formatNumberOf(passages.pool, 'passage')} of ${formatCount(passages.whole)} (${formatPercent(passages.pool / passages.whole)}): ` +
      `${formatCount(passages.chosen)} retrieved or relevant, ${formatCount(passages.sampled)} at random (seed ${settings.seed})`,
    ...passages.sources.map(({ name, passages: count }) => `  ${name}: ${formatCount(count)}`),
    passages.unknownIds > 0 && `  ${formatNumberOf(passages.unknownIds, 'id')} of other lists are not in this index`,
    records !== null &&
      `  ${formatNumberOf(records.read, 'record')} read, ${formatCount(records.ofOtherQuestions)} of other questions left out`,
    `embedded in ${formatDuration(times.embedMs)} (${times.passagesPerSecond.toFixed(0)} passages a second` +
      (times.resumed > 0 ? `, ${formatCount(times.resumed)} by earlier runs` : '') +
      `); all ${formatCount(passages.whole)} would take ${formatDuration(times.wholeMs)}`,
    '',
    ...table(report.recall),
    '',
    verdictLine(report),
  ).join('\n');
}

function table(recall: readonly RecallAt[]): string[] {
  /** A row with a cell for each k; false if all cells are null. */
  const row = (name: string, cellOf: (at: RecallAt) => string | null): string | false => {
    const cells = recall.map(cellOf);
    if (cells.every((cell) => cell === null)) return false;
    return [name.padEnd(44), ...cells.map((cell) => (cell ?? '').padStart(27))].join('').trimEnd();
  };
  const withError = (found: number | undefined, { whole }: RecallAt['present']): string | null =>
    found === undefined ? null : `${found.toFixed(4)} (${formatChange(found - whole.value)})`;
  return lines(
    row('recall', ({ k }) => `@${k}`),
    row('new model, estimate for the whole index', ({ tried }) => withInterval(tried.estimate)),
    row('new model, at most (recall in the pool)', ({ tried }) => tried.bound.value.toFixed(4)),
    row('present encoder, whole index', ({ present }) => withInterval(present.whole)),
    row('estimate minus present encoder', ({ change }) => withInterval(change, formatChange)),
    row('present encoder as if new, estimate (error)', ({ present }) => withError(present.asNew?.estimate, present)),
    row('present encoder as if new, at most (error)', ({ present }) => withError(present.asNew?.bound, present)),
  );
}

function verdictLine({ gate, threshold, verdict, recall }: TriageReport): string {
  const { tried } = recall.find(({ k }) => k === gate.k)!;
  const value = tried.estimate ?? tried.bound;
  const what = tried.estimate === null ? `recall@${gate.k} in the pool` : `estimated recall@${gate.k}`;
  const found = `${what} ${value.value.toFixed(4)}`;
  switch (verdict) {
    case 'none':
      return 'no gate (--min-recall, --max-drop): nothing was decided';
    case 'passed':
      return `PASSED: ${found} is not below ${threshold!.toFixed(4)}`;
    case 'refused':
      return `REFUSED: ${found} is below ${threshold!.toFixed(4)}`;
    case 'refused-for-certain':
      return `REFUSED: recall@${gate.k} is at most ${tried.bound.value.toFixed(4)}, below ${threshold!.toFixed(4)}, whatever the rest of the index has`;
    default:
      throw new TypeError(`unknown verdict: ${verdict satisfies never}`);
  }
}

function withInterval(
  estimate: Estimate | null,
  format: (value: number) => string = (value) => value.toFixed(4),
): string | null {
  if (estimate === null) return null;
  const { value, low, high } = estimate;
  return low === null || high === null ? format(value) : `${format(value)} [${format(low)}, ${format(high)}]`;
}

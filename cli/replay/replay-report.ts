import { formatCount, formatLine, formatNumberOf, formatTable, printable } from '../../src/base/format.ts';
import type { ReplayReport } from '../../training/replay/replay-records.ts';
import type { ShownDifference, SummaryValues } from '../../training/replay/replay-report.ts';
import { lines } from '../output/lines.ts';

/** What each count of records means that were not compared. */
const REASONS: Readonly<Record<keyof ReplayReport['notCompared'], string>> = {
  error: 'failed when they were recorded',
  group: 'of several indexes searched as one',
  view: 'limited by a view',
  queryTree: "of Elasticsearch's interface",
  selection: 'of requests that left hits out or merged lists',
  perturbed: 'whose hits the server had changed on purpose (--perturb)',
  rerankFailed: 'whose reranking failed',
  unknown: 'with settings that this version does not know',
  otherIds: 'of a generation none of whose ids the other index has',
  withoutIds: 'with passages without an id',
};

/** A report for people. `width`: characters per line of the lists side by side. */
export function reportLines(report: ReplayReport, width: number): string[] {
  const { records, all, against, recordedGenerations, turns, differences } = report;
  return [
    `${formatNumberOf(records, 'record')}, ${formatCount(all.queries)} compared, ${formatCount(all.identical)} of them with equal lists`,
    `recorded  ${generations(recordedGenerations)}`,
    `now       ${against.index} ${generations(against.generations)}`,
    ...leftOut(report),
    '',
    ...table(all, turns),
    ...differences.flatMap((difference) => ['', ...sideBySide(difference, width)]),
  ];
}

function generations(all: readonly string[]): string {
  return all.length === 0 ? '(none)' : all.map((each) => (each === '' ? '(none)' : printable(each))).join(', ');
}

function leftOut({ notCompared, failed, failedQueries, answersUnknown }: ReplayReport): string[] {
  const reasons = Object.entries(REASONS).map(([reason, text]) => {
    const count = notCompared[reason as keyof typeof notCompared];
    return count > 0 && `not compared: ${formatCount(count)} ${text}`;
  });
  const refused = Object.entries(failed).map(
    ([code, count]) => `not compared: ${formatCount(count)} whose search is refused now [${code}]`,
  );
  const failing = Object.entries(failedQueries).map(
    ([code, count]) => `compared with an empty list: ${formatCount(count)} that fail now [${code}]`,
  );
  return lines(
    ...reasons,
    ...refused,
    ...failing,
    answersUnknown > 0 &&
      `answers: ${formatCount(answersUnknown)} ${answersUnknown === 1 ? 'query' : 'queries'} left out, as texts of recorded passages are unknown`,
  );
}

/** One line per turn and one for all. */
function table(all: SummaryValues, turns: ReplayReport['turns']): string[] {
  if (all.queries === 0) return ['Nothing was compared.'];
  const hasGold = all.gold.queries > 0;
  const hasAnswers = all.answers.queries > 0;
  const header = [
    'turn',
    'queries',
    'equal',
    'RBO',
    ...all.overlap.map(({ k }) => `overlap@${k}`),
    ...(hasGold ? ['gold before', 'now', 'gained', 'lost'] : []),
    ...(hasAnswers ? ['answers before', 'now', 'gained', 'lost'] : []),
  ];
  const row = (name: string, { queries, identical, rbo, overlap, gold, answers }: SummaryValues): string[] => [
    name,
    formatCount(queries),
    formatCount(identical),
    share(rbo),
    ...overlap.map(({ mean }) => share(mean)),
    ...(hasGold ? [gold.before, gold.now, gold.gained, gold.lost].map(formatCount) : []),
    ...(hasAnswers ? [answers.before, answers.now, answers.gained, answers.lost].map(formatCount) : []),
  ];
  const onlyUnknown = turns.length === 1 && turns[0]!.turn === null;
  const rows = [
    header,
    ...(onlyUnknown
      ? []
      : turns.map(({ turn, ...values }) => row(turn === null ? 'not recorded' : String(turn), values))),
    row('all', all),
  ];
  return formatTable(rows);
}

function share(value: number | null): string {
  return value === null ? '–' : value.toFixed(4);
}

function sideBySide({ rbo, query, question, trajectory, turn, before, now }: ShownDifference, width: number): string[] {
  const half = Math.max(20, Math.floor((width - 8) / 2));
  const where = lines(trajectory !== null && `trajectory ${trajectory}`, turn !== null && `turn ${turn}`).join(', ');
  const cell = (passage: ShownDifference['now'][number] | undefined): string => {
    if (passage === undefined) return '';
    const { id, row, title } = passage;
    return formatLine(`${id ?? `row ${row}`}${title === null ? '' : `  ${title}`}`, half);
  };
  const ranks = Array.from({ length: Math.max(before.length, now.length) }, (_, i) => i);
  return lines(
    formatLine(`RBO ${rbo.toFixed(4)}${where === '' ? '' : `  (${where})`}  ${query}`, width),
    question !== null && formatLine(`  question: ${question}`, width),
    `    ${'before'.padEnd(half)}  now`,
    ...ranks.map((i) => `${String(i + 1).padStart(3)} ${cell(before[i]).padEnd(half)}  ${cell(now[i])}`.trimEnd()),
  );
}

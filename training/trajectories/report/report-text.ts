import { countOf, percent } from './report-numbers.ts';
import type { TrajectoryReport } from './trajectory-report.ts';
import type { GroupReport } from './trajectory-tally.ts';

/** The report as tables for a terminal. */
export function reportText({ all, types, unknownQuestions }: TrajectoryReport): string {
  const tables = [
    summary(all),
    '',
    ...table(
      ['turn', 'trajectories', 'any gold', 'all gold', 'gold recall', 'answer shown'],
      all.turns.map(({ turn, trajectories, goldAny, goldAll, goldRecall, answer }) => [
        String(turn),
        trajectories.toLocaleString('en-US'),
        ...[goldAny, goldAll, goldRecall, answer].map(percent),
      ]),
    ),
    '',
    ...table(
      ['turn', 'queries', 'repeated', 'nothing new', 'passages shown again', 'truncated'],
      all.turns.map((turn) => [String(turn.turn), ...waste(turn)]),
    ),
  ];
  if (types.length > 0) {
    tables.push(
      '',
      ...table(
        ['type', 'trajectories', 'turns', 'all gold', 'answer shown', 'correct', 'repeated', 'nothing new'],
        types.map((group) => [
          group.type ?? '',
          group.trajectories.toLocaleString('en-US'),
          group.meanTurns.toFixed(2),
          ...[group.goldAll, group.answer, group.correct].map(percent),
          countOf(group.repeated, group.queries),
          countOf(group.unchanged, group.queries),
        ]),
      ),
    );
  }
  if (unknownQuestions !== null && unknownQuestions > 0) {
    tables.push('', `${unknownQuestions} trajectories have a question that is not in the questions file`);
  }
  return tables.join('\n');
}

function summary({
  trajectories,
  withoutSearch,
  meanTurns,
  queries,
  judged,
  answerable,
  correct,
}: GroupReport): string {
  const graded = correct === null ? '' : `, ${percent(correct)} correct`;
  return (
    `${trajectories.toLocaleString('en-US')} trajectories with ${queries.toLocaleString('en-US')} queries, ${meanTurns.toFixed(2)} turns on average` +
    `${withoutSearch > 0 ? `, ${withoutSearch} without search` : ''}${graded}; gold passages known for ${judged}, answers for ${answerable}`
  );
}

function waste(turn: GroupReport['turns'][number]): string[] {
  return [
    turn.queries.toLocaleString('en-US'),
    countOf(turn.repeated, turn.queries),
    countOf(turn.unchanged, turn.queries),
    countOf(turn.shownBefore, turn.shown),
    countOf(turn.truncated, turn.queries),
  ];
}

/** The first column is left-aligned. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((name, i) => Math.max(name.length, ...rows.map((row) => row[i]!.length)));
  return [head, ...rows].map((row) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join('  ')
      .trimEnd(),
  );
}

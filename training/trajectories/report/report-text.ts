import { formatCount, formatPart, formatPercent, formatTable } from '../../../src/base/format.ts';
import type { TrajectoryReport } from './trajectory-report.ts';
import type { GroupReport } from './trajectory-tally.ts';

/** The report as tables for a terminal. */
export function reportText({ all, types, unknownQuestions }: TrajectoryReport): string {
  const tables = [
    summary(all),
    '',
    ...formatTable([
      ['turn', 'trajectories', 'any gold', 'all gold', 'gold recall', 'answer shown'],
      ...all.turns.map(({ turn, trajectories, goldAny, goldAll, goldRecall, answer }) => [
        String(turn),
        formatCount(trajectories),
        ...[goldAny, goldAll, goldRecall, answer].map(formatPercent),
      ]),
    ]),
    '',
    ...formatTable([
      ['turn', 'queries', 'repeated', 'nothing new', 'passages shown again', 'truncated'],
      ...all.turns.map((turn) => [String(turn.turn), ...waste(turn)]),
    ]),
  ];
  if (types.length > 0) {
    tables.push(
      '',
      ...formatTable([
        ['type', 'trajectories', 'turns', 'all gold', 'answer shown', 'correct', 'repeated', 'nothing new'],
        ...types.map((group) => [
          group.type ?? '',
          formatCount(group.trajectories),
          group.meanTurns.toFixed(2),
          ...[group.goldAll, group.answer, group.correct].map(formatPercent),
          formatPart(group.repeated, group.queries),
          formatPart(group.unchanged, group.queries),
        ]),
      ]),
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
  const graded = correct === null ? '' : `, ${formatPercent(correct)} correct`;
  return (
    `${formatCount(trajectories)} trajectories with ${formatCount(queries)} queries, ${meanTurns.toFixed(2)} turns on average` +
    `${withoutSearch > 0 ? `, ${withoutSearch} without search` : ''}${graded}; gold passages known for ${judged}, answers for ${answerable}`
  );
}

function waste(turn: GroupReport['turns'][number]): string[] {
  return [
    formatCount(turn.queries),
    formatPart(turn.repeated, turn.queries),
    formatPart(turn.unchanged, turn.queries),
    formatPart(turn.shownBefore, turn.shown),
    formatPart(turn.truncated, turn.queries),
  ];
}

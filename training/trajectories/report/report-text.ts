import { formatCount, formatPart, formatPercent, formatTable } from '../../../src/base/format.ts';
import type { TrajectoryReport } from './trajectory-report.ts';

export function reportText({ all, types, unknownQuestions }: TrajectoryReport): string {
  const { trajectories, queries, meanTurns, withoutSearch, correct, judged, answerable } = all;
  const searchless = withoutSearch > 0 ? `, ${withoutSearch} without search` : '';
  const graded = correct === null ? '' : `, ${formatPercent(correct)} correct`;
  const lines = [
    `${formatCount(trajectories)} trajectories with ${formatCount(queries)} queries, ${meanTurns.toFixed(2)} turns on average` +
      `${searchless}${graded}; gold passages known for ${judged}, answers for ${answerable}`,
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
      ...all.turns.map(({ turn, queries, repeated, unchanged, shownBefore, shown, truncated }) => [
        String(turn),
        formatCount(queries),
        formatPart(repeated, queries),
        formatPart(unchanged, queries),
        formatPart(shownBefore, shown),
        formatPart(truncated, queries),
      ]),
    ]),
  ];
  if (types.length > 0) {
    const rows = types.map((group) => [
      group.type ?? '',
      formatCount(group.trajectories),
      group.meanTurns.toFixed(2),
      ...[group.goldAll, group.answer, group.correct].map(formatPercent),
      formatPart(group.repeated, group.queries),
      formatPart(group.unchanged, group.queries),
    ]);
    const head = ['type', 'trajectories', 'turns', 'all gold', 'answer shown', 'correct', 'repeated', 'nothing new'];
    lines.push('', ...formatTable([head, ...rows]));
  }
  if (unknownQuestions !== null && unknownQuestions > 0) {
    lines.push('', `${unknownQuestions} trajectories have a question that is not in the questions file`);
  }
  return lines.join('\n');
}

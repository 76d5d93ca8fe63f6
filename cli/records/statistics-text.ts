import { formatCount, formatNumberOf, formatTable, printable } from '../../src/base/format.ts';
import type { RecordStatistics } from '../../training/records/record-statistics.ts';
import { lines } from '../output/lines.ts';

/** Names that a line lists. */
const SHOWN = 8;

/** The statistics as lines for people. */
export function statisticsText(statistics: RecordStatistics): string {
  const { queries, from, to, trajectories, distinctQueries, repeatedQueries, retries, openings } = statistics;
  const { unfinishedLines, damagedLines } = statistics;
  const rows: (readonly [string, string | false])[] = [
    ['queries', from === null ? '0' : `${formatCount(queries)}, ${from} to ${to}`],
    ['distinct', `${formatCount(distinctQueries)}, repeated ${formatCount(repeatedQueries)}`],
    [
      'trajectories',
      `${formatCount(trajectories.named)} named, ${formatCount(trajectories.fromTraces)} from traces, ` +
        `${formatCount(trajectories.guessed)} guessed; ${formatNumberOf(trajectories.turns, 'turn')}; ` +
        `${formatCount(trajectories.queriesWithout)} queries without`,
    ],
    ['retries', formatCount(retries)],
    [
      'openings',
      openings.count > 0 &&
        `${formatCount(openings.count)}, found ${formatCount(openings.found)}; ${formatCount(openings.withoutTrajectory)} without a trajectory`,
    ],
    ['errors', countsText(statistics.errors)],
    ['cut', countsText(statistics.cut)],
    ['perturbed', countsText(statistics.perturbed)],
    ['dialects', countsText(statistics.dialects)],
    ['indexes', countsText(statistics.indexes)],
    ['generations', countsText(statistics.generations)],
    ['modes', countsText(statistics.modes)],
    ['k', countsText(statistics.k)],
    ['turns', countsText(statistics.turns)],
    ['policies', countsText(statistics.policies)],
    ['data sets', countsText(statistics.datasets)],
    ['splits', countsText(statistics.splits)],
    ['unfinished', unfinishedLines > 0 && formatNumberOf(unfinishedLines, 'last line')],
    ['damaged', damagedLines > 0 && formatNumberOf(damagedLines, 'line')],
  ];
  const shown = rows.flatMap(([name, text]) => (text === false ? [] : [[name, text]]));
  return [
    ...formatTable(shown, { allLeft: true }),
    ...statistics.damaged.map(({ file, line, reason }) => `  ${printable(file)}:${line}: ${reason}`),
  ].join('\n');
}

/** The most frequent names with their counts; false if there are none. */
function countsText(counts: Readonly<Record<string, number>>): string | false {
  const entries = Object.entries(counts).sort(([, a], [, b]) => b - a);
  const shown = entries.slice(0, SHOWN).map(([name, count]) => `${printable(name)} ${formatCount(count)}`);
  const more = entries.length - shown.length;
  return entries.length > 0 && lines(...shown, more > 0 && `${formatCount(more)} more`).join(', ');
}

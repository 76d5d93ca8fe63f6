import { formatCount, formatNumberOf, printable } from '../../src/base/format.ts';
import type { RecordStatistics } from '../../training/records/record-statistics.ts';

/** Names that a line lists. */
const SHOWN = 8;

/** The statistics as lines for people. */
export function statisticsText(statistics: RecordStatistics): string {
  const { queries, from, to, trajectories, distinctQueries, repeatedQueries, retries } = statistics;
  const rows: [string, string][] = [
    ['queries', from === null ? '0' : `${formatCount(queries)}, ${from} to ${to}`],
    ['distinct', `${formatCount(distinctQueries)}, repeated ${formatCount(repeatedQueries)}`],
    [
      'trajectories',
      `${formatCount(trajectories.named)} named, ${formatCount(trajectories.fromTraces)} from traces, ` +
        `${formatCount(trajectories.guessed)} guessed; ${formatNumberOf(trajectories.turns, 'turn')}; ` +
        `${formatCount(trajectories.queriesWithout)} queries without`,
    ],
    ['retries', formatCount(retries)],
  ];
  const { openings } = statistics;
  if (openings.count > 0) {
    rows.push([
      'openings',
      `${formatCount(openings.count)}, found ${formatCount(openings.found)}; ${formatCount(openings.withoutTrajectory)} without a trajectory`,
    ]);
  }
  for (const [name, counts] of [
    ['errors', statistics.errors],
    ['cut', statistics.cut],
    ['perturbed', statistics.perturbed],
    ['dialects', statistics.dialects],
    ['indexes', statistics.indexes],
    ['generations', statistics.generations],
    ['modes', statistics.modes],
    ['k', statistics.k],
    ['turns', statistics.turns],
    ['policies', statistics.policies],
    ['data sets', statistics.datasets],
    ['splits', statistics.splits],
  ] as const) {
    if (Object.keys(counts).length > 0) rows.push([name, countsText(counts)]);
  }
  if (statistics.unfinishedLines > 0)
    rows.push(['unfinished', formatNumberOf(statistics.unfinishedLines, 'last line')]);
  if (statistics.damagedLines > 0) rows.push(['damaged', formatNumberOf(statistics.damagedLines, 'line')]);
  const width = Math.max(...rows.map(([name]) => name.length));
  return [
    ...rows.map(([name, text]) => `${name.padEnd(width)}  ${text}`),
    ...statistics.damaged.map(({ file, line, reason }) => `  ${printable(file)}:${line}: ${reason}`),
  ].join('\n');
}

function countsText(counts: Readonly<Record<string, number>>): string {
  const entries = Object.entries(counts).sort(([, a], [, b]) => b - a);
  const shown = entries.slice(0, SHOWN).map(([name, count]) => `${printable(name)} ${formatCount(count)}`);
  const more = entries.length - shown.length;
  return [...shown, ...(more > 0 ? [`${formatCount(more)} more`] : [])].join(', ');
}

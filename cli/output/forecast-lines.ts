import type { SearchForecast } from '../../evaluation/speed/search-forecast.ts';
import { formatCount, formatDuration, formatNumberOf } from '../../src/base/format.ts';
import { lines } from './lines.ts';

/** The searches of `--plan` as lines. */
export function forecastLines({ trial, expected, encoder }: SearchForecast): string[] {
  const { readBytesPerS, threads, isa } = trial;
  const columns = expected[0]?.searches.map(({ queries }) => formatCount(queries)) ?? [];
  const line = (name: string, ...cells: readonly string[]): string =>
    `  ${name.padEnd(26)}${cells.map((cell) => cell.padStart(12)).join('')}`;
  return lines(
    `searches, expected from a trial on this machine (${(readBytesPerS / 1e9).toFixed(1)} GB/s of memory, ${isa}, ${formatNumberOf(threads, 'thread')})`,
    line('queries at once', ...columns),
    ...expected.flatMap(({ rows, searches }) => [
      line(rows, ...searches.map(({ ms }) => formatDuration(ms))),
      line('  queries/s', ...searches.map(({ queriesPerS: rate }) => formatRate(rate))),
    ]),
    encoder !== null &&
      `  embedding a query         ${formatDuration(encoder.loneMs)} alone, ${formatRate(encoder.queriesPerS)} queries/s with many at once`,
    combinedLine(expected),
    "  if the bytes for searching are in memory, for vectors distributed like E5's (docs/building.md#expected-speed)",
  );
}

/** With and without prefilters both rates, because only the vectors decide between them. */
function combinedLine(expected: SearchForecast['expected']): string | false {
  const rates = expected.flatMap(({ rows, queriesPerS }) =>
    queriesPerS === null ? [] : [{ rows, rate: formatRate(queriesPerS) }],
  );
  if (rates.length === 0) return false;
  const same = rates.every(({ rate }) => rate === rates[0]!.rate);
  const text = same
    ? `about ${rates[0]!.rate} queries/s`
    : `${rates.map(({ rows, rate }) => `about ${rate} ${rows}`).join(', ')} queries/s`;
  return `  embedding and searching   ${text}: both share the cores`;
}

function formatRate(rate: number): string {
  return rate < 10 ? rate.toFixed(1) : formatCount(Math.round(rate));
}

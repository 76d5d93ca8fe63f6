import type { Environment } from '../environment.ts';
import { formatMs, machineLine, markdownTable } from '../report-format.ts';
import type { FilterRecord } from './bench-filter.ts';

/** The records as a Markdown table. */
export function filterReport(records: readonly FilterRecord[], facts: Environment): string {
  const lines = records.map(({ filter, rows, passing, evaluateMs, cachedMs }) => [
    `${((100 * passing) / rows).toPrecision(3)} %`,
    `\`${filter}\``,
    formatMs(evaluateMs),
    cachedMs.toFixed(4),
  ]);
  return [
    `filters over ${records[0]?.rows ?? 0} rows, median of ${records[0]?.runs ?? 0} runs after one`,
    machineLine(facts, facts.isa),
    '',
    ...markdownTable(['rows that pass', 'filter', 'evaluate ms', 'cached ms'], lines),
  ].join('\n');
}

import type { Environment } from '../environment.ts';
import { formatMs, machineLine, markdownTable } from '../report-format.ts';
import { type BenchFilterResult, type FilterRecord, isFilterRecord } from './bench-filter.ts';
import type { FilteredSearchRecord } from './filtered-searches.ts';

/** The records as Markdown tables. */
export function filterReport(records: BenchFilterResult['records'], facts: Environment): string {
  const evaluated = records.filter(isFilterRecord);
  const searched = records.filter((record): record is FilteredSearchRecord => 'medianMs' in record);
  const share = ({ passing, rows }: FilterRecord | FilteredSearchRecord): string =>
    `${((100 * passing) / rows).toPrecision(3)} %`;
  const lines = evaluated.map((record) => [
    share(record),
    `\`${record.case}\``,
    formatMs(record.evaluateMs),
    record.cachedMs.toFixed(4),
  ]);
  const searches = searched.map((record) => [
    record.mode,
    String(record.queries),
    share(record),
    formatMs(record.medianMs),
    record.shareOfUnfiltered.toFixed(2),
  ]);
  const header = ['mode', 'queries', 'rows that pass', 'ms a call', 'of the time without a filter'];
  return [
    `filters over ${records[0]?.rows ?? 0} rows, median of ${records[0]?.runs ?? 0} runs after one`,
    machineLine(facts, facts.isa),
    '',
    ...markdownTable(['rows that pass', 'filter', 'evaluate ms', 'cached ms'], lines),
    ...(searches.length === 0 ? [] : ['', ...markdownTable(header, searches)]),
  ].join('\n');
}

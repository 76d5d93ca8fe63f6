import { machineLine, markdownTable } from '../report-format.ts';
import type { BenchBulkResult } from './bench-bulk.ts';

/** The records as a Markdown table. */
export function bulkReport({ records, environment }: BenchBulkResult): string {
  const { rows, dimension, queries, k, threads } = records[0]!;
  const lines = records.map((record) => [
    record.seconds.toFixed(1),
    record.case,
    record.queriesPerS.toFixed(0),
    `${record.ratioToEngine.toFixed(3)} ×`,
    record.ratios.map((ratio) => ratio.toFixed(3)).join(' to '),
  ]);
  return [
    `${queries} queries, k = ${k}, over ${rows} × ${dimension}, ${threads} threads`,
    machineLine(environment, environment.isa),
    '',
    ...markdownTable(['seconds', 'way', 'queries/s', 'time / engine', 'of a piece'], lines),
  ].join('\n');
}

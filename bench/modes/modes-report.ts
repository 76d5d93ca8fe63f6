import { formatMs, machineLine, markdownTable } from '../report-format.ts';
import type { BenchModesResult } from './bench-modes.ts';

/** The records as a Markdown table. */
export function modesReport({ records, rows, model, environment }: BenchModesResult): string {
  const lines = records.map((record) => [
    record.passing.toString(),
    record.case,
    record.judged.toString(),
    record.recallAt10.toFixed(3),
    formatMs(record.p50Ms),
    formatMs(record.p99Ms),
  ]);
  const header = ['passages', 'ranking', 'questions', 'recall@10', 'p50 ms', 'p99 ms'];
  return [
    `${rows} passages, ${model}`,
    machineLine(environment, environment.isa),
    '',
    ...markdownTable(header, lines),
  ].join('\n');
}

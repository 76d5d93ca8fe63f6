import { formatMs, machineLine, markdownTable } from '../report-format.ts';
import type { BenchServeResult } from './bench-serve.ts';

/** The records as a Markdown table. */
export function serveReport({ records, environment, index, rows, model }: BenchServeResult): string {
  const header = [
    'load',
    'engine',
    'clients',
    'queries/s',
    'p50 ms',
    'p99 ms',
    'max ms',
    'overhead p50 ms',
    'errors',
    'wrong',
    '× baseline',
  ];
  const lines = records.map((record) => [
    record.load,
    record.engine,
    String(record.clients),
    record.queriesPerS.toFixed(record.queriesPerS < 100 ? 1 : 0),
    formatMs(record.p50Ms),
    formatMs(record.p99Ms),
    formatMs(record.maxMs),
    record.overheadP50Ms === null ? '' : record.overheadP50Ms.toFixed(2),
    String(record.errors),
    String(record.wrong),
    record.ratioToBaseline === null ? '' : record.ratioToBaseline.toFixed(2),
  ]);
  return [
    `${index}: ${rows} passages, ${model}; median of ${records[0]?.runs ?? 0} repetitions`,
    machineLine(environment),
    '',
    ...markdownTable(header, lines),
    '',
    'p50, p99, max: per request. overhead: server-timing without queueing, encoding and search. × baseline: above 1, Trawl is better.',
  ].join('\n');
}

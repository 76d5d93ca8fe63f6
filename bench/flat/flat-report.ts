import type { Environment } from '../environment.ts';
import { formatGigabytes, formatMs, machineLine, markdownTable } from '../report-format.ts';
import type { FlatRecord } from './flat-case.ts';

/** The records as a Markdown table. */
export function flatReport(records: readonly FlatRecord[], environment: Environment): string {
  const [any] = records;
  if (any === undefined) return 'Nothing was measured.';
  const { isa, bandwidthGbPerS } = environment;
  const header = [
    'queries',
    'engine',
    'median ms',
    'p95 ms',
    'M dots/s',
    'time / Trawl',
    'rescored',
    'resident',
    'agrees',
  ];
  const lines = records.map((record) => [
    String(record.queries),
    record.engine,
    formatMs(record.medianMs),
    formatMs(record.p95Ms),
    (record.dotsPerS / 1e6).toFixed(1),
    record.engine === 'trawl' ? '1' : `${record.ratioToTrawl.toFixed(2)}×`,
    record.candidatesMedian === null
      ? ''
      : `${Math.round(record.candidatesMedian)} / ${Math.round(record.candidatesP95!)} / ${record.candidatesMax}`,
    formatGigabytes(record.residentBytes),
    record.agreement === null ? '' : `${(record.agreement * 100).toFixed(1)} %`,
  ]);
  return [
    `${any.rows} × ${any.dimension} ${any.dtype}, k = ${any.k}, ${any.threads} threads, median of ${any.runs} after a warm-up`,
    machineLine(environment, isa),
    '',
    ...markdownTable(header, lines),
    ...singleQuery(records, bandwidthGbPerS),
    '',
    'rescored: rows with an exact score per query, median / 95th percentile / maximum. agrees: queries with the same list as Trawl, up to near-ties.',
  ].join('\n');
}

/** Bytes that Trawl reads per second for a single query, which is limited by memory bandwidth, and the share of the bandwidth. */
function singleQuery(records: readonly FlatRecord[], bandwidthGbPerS: number | null): string[] {
  const record = records.find(({ engine, queries }) => engine === 'trawl' && queries === 1);
  if (record === undefined) return [];
  const gbPerS = record.residentBytes / 1e6 / record.medianMs;
  const share =
    bandwidthGbPerS === null
      ? ''
      : `, ${Math.round((100 * gbPerS) / bandwidthGbPerS)} % of the memory's ${bandwidthGbPerS} GB/s`;
  return ['', `One query reads ${gbPerS.toFixed(1)} GB/s of codes${share}.`];
}

import type { BenchServeResult } from './bench-serve.ts';
import type { EmbedRecord } from './embed-case.ts';
import type { Environment, MachineFacts } from './environment.ts';
import type { FlatRecord } from './flat-case.ts';

/** Decimal: 15.4 GB is 15.4 × 10^9 bytes. */
export function formatGigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(bytes < 1e8 ? 4 : 2)} GB`;
}

/** A table of Markdown, which reads well on a terminal too. */
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
    ...table(header, lines),
    ...singleQuery(records, bandwidthGbPerS),
    '',
    'rescored: exact rows read per query, median / 95th percentile / maximum. agrees: queries with our list, near-ties apart.',
  ].join('\n');
}

export interface EmbedEnvironment extends MachineFacts {
  /** A float32 matrix product of the baseline on the same threads, 10^9 operations a second; null: no baseline. */
  readonly matmulGflopPerS: number | null;
}

/** A table of Markdown. */
export function embedReport(records: readonly EmbedRecord[], environment: EmbedEnvironment, model: string): string {
  const [any] = records;
  if (any === undefined) return 'Nothing was measured.';
  const header = [
    'precision',
    'engine',
    'texts/s',
    'tokens/s',
    '× baseline',
    'GFLOP/s',
    'query p50 ms',
    'query p99 ms',
    'memory',
    'cosine',
  ];
  const lines = records.map((record) => [
    record.precision,
    record.engine,
    record.textsPerS.toFixed(1),
    record.tokensPerS.toFixed(0),
    record.ratioToBaseline === null ? '' : record.ratioToBaseline.toFixed(2),
    record.gflopPerS === null ? '' : record.gflopPerS.toFixed(0),
    formatMs(record.queryP50Ms),
    formatMs(record.queryP99Ms),
    formatGigabytes(record.residentBytes),
    record.cosineToBaseline === null ? '' : record.cosineToBaseline.toFixed(7),
  ]);
  const { matmulGflopPerS } = environment;
  return [
    `${model}: ${any.texts} passages of ${(any.tokens / any.texts).toFixed(0)} tokens on average, ${any.threads} threads, median of ${any.runs} after a warm-up`,
    machineLine(environment),
    '',
    ...table(header, lines),
    '',
    ...(matmulGflopPerS === null
      ? []
      : [`A float32 matrix product reaches ${matmulGflopPerS.toFixed(0)} GFLOP/s on these threads.`]),
    'GFLOP/s: of the matrix products that the texts need. cosine: the smallest to the baseline over 32 passages.',
  ].join('\n');
}

/** A table of Markdown. */
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
    ...table(header, lines),
    '',
    'p50, p99, max: of a request. overhead: of the server-timing header, all but encoding and search. × baseline: above 1 is better.',
  ].join('\n');
}

function machineLine(facts: MachineFacts, isa?: string): string {
  const { processor, cores, memoryBytes, loadBefore, node, platform, engines, date } = facts;
  return `${date.slice(0, 10)}, ${processor}, ${cores} cores, ${isa === undefined ? '' : `${isa}, `}${formatGigabytes(memoryBytes)}, load before ${loadBefore.toFixed(1)}, ${platform}, Node.js ${node}; ${[...new Set(engines)].join(', ')}`;
}

/** One query is bound by reading: what Trawl reads a second, beside what the memory can give. */
function singleQuery(records: readonly FlatRecord[], bandwidthGbPerS: number | null): string[] {
  const record = records.find(({ engine, queries }) => engine === 'trawl' && queries === 1);
  if (record === undefined) return [];
  const gbPerS = record.residentBytes / 1e6 / record.medianMs;
  const share =
    bandwidthGbPerS === null
      ? ''
      : `, ${Math.round((100 * gbPerS) / bandwidthGbPerS)} % of the ${bandwidthGbPerS} GB/s that the memory gives`;
  return ['', `One query reads ${gbPerS.toFixed(1)} GB/s of codes${share}.`];
}

function table(header: readonly string[], lines: readonly (readonly string[])[]): string[] {
  const widths = header.map((name, i) => Math.max(name.length, ...lines.map((line) => line[i]!.length)));
  const row = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => (i === 1 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join(' | ')} |`;
  const rule = widths.map((width, i) => (i === 1 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [row(header), row(rule), ...lines.map(row)];
}

function formatMs(ms: number): string {
  return ms < 10 ? ms.toFixed(2) : ms < 100 ? ms.toFixed(1) : ms.toFixed(0);
}

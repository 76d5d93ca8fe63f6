import type { MachineFacts } from '../environment.ts';
import { formatGigabytes, formatMs, machineLine, markdownTable } from '../report-format.ts';
import type { EmbedRecord } from './embed-case.ts';

export interface EmbedEnvironment extends MachineFacts {
  /** Speed of a float32 matrix product of the baseline on the same threads, in 10^9 operations a second; null without one. */
  readonly matmulGflopPerS: number | null;
}

/** The records as a Markdown table. */
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
    ...markdownTable(header, lines),
    '',
    ...(matmulGflopPerS === null
      ? []
      : [`A float32 matrix product reaches ${matmulGflopPerS.toFixed(0)} GFLOP/s on these threads.`]),
    'GFLOP/s: in the matrix products that the texts need. cosine: the smallest one to the baseline over 32 passages.',
  ].join('\n');
}

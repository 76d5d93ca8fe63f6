import { formatMs, machineLine, markdownTable } from '../report-format.ts';
import type { BenchProductsResult, ProductsRecord } from './bench-products.ts';

/** The records as Markdown tables, one for each number of tokens. */
export function productsReport({ records, environment, skipped }: BenchProductsResult): string {
  const lines: string[] = [];
  for (const tokens of new Set(records.map((record) => record.tokens))) {
    const some = records.filter((record) => record.tokens === tokens);
    const { hidden, layers, runs } = some[0]!;
    lines.push(
      `products of ${layers} layers of ${hidden} values, ${tokens} tokens, median of ${runs} runs after one`,
      '',
    );
    lines.push(...table(some), '');
  }
  return [
    machineLine(environment),
    ...lines,
    ...skipped.map(({ kind, reason }) => `${kind}: not possible: ${reason}`),
  ].join('\n');
}

function table(records: readonly ProductsRecord[]): string[] {
  const header = [
    'threads',
    'product',
    'ms',
    'processor ms',
    'GFLOP/s of one thread',
    '× float32',
    'bits of one thread',
  ];
  return markdownTable(
    header,
    records.map((record) => [
      record.use === 'alone' ? '1' : `${record.threads} ${record.use}`,
      record.kind,
      formatMs(record.medianMs),
      formatMs(record.processorMs),
      record.gflopPerS?.toFixed(0) ?? '',
      record.ratioToFloat32?.toFixed(2) ?? '',
      record.sameBits === null ? '' : record.sameBits ? 'yes' : 'no',
    ]),
  );
}

import type { Compression } from '../../src/base/files/compression.ts';

/** Formats of query files. */
export const QUERY_FORMATS = ['jsonl', 'tsv', 'trec', 'parquet'] as const;
export type QueryFormat = (typeof QUERY_FORMATS)[number];

const ENDINGS: Readonly<Record<string, QueryFormat>> = {
  '.tsv': 'tsv',
  '.trec': 'trec',
  '.topics': 'trec',
  '.xml': 'trec',
  '.parquet': 'parquet',
};

export interface NamedFormat {
  readonly format: QueryFormat;
  readonly compression: Compression;
}

/** The requested format, else that of the file name; other names than those of the list are JSON lines. */
export function queryFormatOf(path: string, requested: QueryFormat | undefined): NamedFormat {
  const name = path.toLowerCase();
  const packed = /\.(gz|zst)$/.exec(name)?.[1];
  const plain = packed === undefined ? name : name.slice(0, -packed.length - 1);
  const ending = Object.keys(ENDINGS).find((each) => plain.endsWith(each));
  const compression = packed === 'gz' ? 'gzip' : packed === 'zst' ? 'zstd' : 'none';
  return { format: requested ?? (ending === undefined ? 'jsonl' : ENDINGS[ending]!), compression };
}

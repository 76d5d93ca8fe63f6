import { TrawlError } from '../src/base/errors.ts';
import type { Compression } from '../src/base/files/compression.ts';

/** Corpus file formats, named like the file name extensions. */
export const CORPUS_FORMATS = ['jsonl', 'jsonl.gz', 'jsonl.zst', 'tsv', 'tsv.gz', 'tsv.zst', 'parquet'] as const;

export type CorpusFormat = (typeof CORPUS_FORMATS)[number];

/** Lower-case file name extensions and their formats. */
const EXTENSIONS: readonly (readonly [string, CorpusFormat])[] = [
  ['.jsonl', 'jsonl'],
  ['.ndjson', 'jsonl'],
  ['.jsonl.gz', 'jsonl.gz'],
  ['.ndjson.gz', 'jsonl.gz'],
  ['.jsonl.zst', 'jsonl.zst'],
  ['.ndjson.zst', 'jsonl.zst'],
  ['.tsv', 'tsv'],
  ['.tsv.gz', 'tsv.gz'],
  ['.tsv.zst', 'tsv.zst'],
  ['.parquet', 'parquet'],
];

export const KNOWN_EXTENSIONS: readonly string[] = EXTENSIONS.map(([extension]) => extension);

export function compressionOf(format: CorpusFormat): Compression {
  if (format.endsWith('.gz')) return 'gzip';
  return format.endsWith('.zst') ? 'zstd' : 'none';
}

/** The format of a file name, ignoring case; undefined for an unknown extension. */
export function formatOfName(path: string): CorpusFormat | undefined {
  const lowerCase = path.toLowerCase();
  return EXTENSIONS.find(([extension]) => lowerCase.endsWith(extension))?.[1];
}

/** The requested format, else the format that the file name implies. */
export function formatOf(path: string, requested: CorpusFormat | undefined): CorpusFormat {
  const format = requested ?? formatOfName(path);
  if (format !== undefined) return format;
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    `The format of ${path} is unknown: expected a name that ends in ${KNOWN_EXTENSIONS.join(', ')}. Rename it, or set ` +
      `--format ${CORPUS_FORMATS.join('|')}.`,
    { details: { path } },
  );
}

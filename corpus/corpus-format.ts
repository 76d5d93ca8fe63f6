import { TrawlError } from '../src/errors.ts';
import type { Compression } from './compression.ts';

/** Every kind of corpus file; the name is also the file name's extension. */
export const CORPUS_FORMATS = ['jsonl', 'jsonl.gz', 'jsonl.zst', 'tsv', 'tsv.gz', 'tsv.zst', 'parquet'] as const;

export type CorpusFormat = (typeof CORPUS_FORMATS)[number];

/** Lower-case ends of a file name and the format they mean. */
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

export function isCorpusFormat(name: string): name is CorpusFormat {
  return (CORPUS_FORMATS as readonly string[]).includes(name);
}

export function compressionOf(format: CorpusFormat): Compression {
  if (format.endsWith('.gz')) return 'gzip';
  return format.endsWith('.zst') ? 'zstd' : 'none';
}

/** The format that a file's name tells; undefined for a name with no known extension. Letter case does not matter. */
export function formatOfName(path: string): CorpusFormat | undefined {
  const lowerCase = path.toLowerCase();
  return EXTENSIONS.find(([extension]) => lowerCase.endsWith(extension))?.[1];
}

/** The format of a file that was named by the user, who may have said it. */
export function formatOf(path: string, requested: CorpusFormat | undefined): CorpusFormat {
  const format = requested ?? formatOfName(path);
  if (format !== undefined) return format;
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    `The kind of the corpus file ${path} cannot be told from its name: expected a name that ends in ` +
      `${KNOWN_EXTENSIONS.join(', ')}. Rename it, or say the kind with --format ${CORPUS_FORMATS.join('|')}.`,
    { details: { path } },
  );
}

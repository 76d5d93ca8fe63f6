import { TrawlError } from '../src/base/errors.ts';
import { type Compression, compressionOf } from '../src/base/files/compression.ts';
import { checkIsText } from '../src/base/files/foreign-file.ts';
import { quoteForShell } from '../src/base/format.ts';
import type { CorpusFormat } from './corpus-format.ts';
import { jsonl } from './read-jsonl.ts';
import { parquet } from './read-parquet.ts';
import { tsv } from './read-tsv.ts';

const FORMATS: readonly CorpusFormat[] = [jsonl, tsv, parquet];

/** A format with a compression, as --format names it: `jsonl.gz`. */
export interface FileFormat {
  readonly name: string;
  readonly format: CorpusFormat;
  readonly compression: Compression;
  /** Endings of file names, lower-case. */
  readonly extensions: readonly string[];
}

const COMPRESSIONS = [
  ['', 'none'],
  ['.gz', 'gzip'],
  ['.zst', 'zstd'],
] as const;

export const FILE_FORMATS: readonly FileFormat[] = FORMATS.flatMap((format) =>
  COMPRESSIONS.slice(0, format.newline === null ? 1 : undefined).map(([ending, compression]) => ({
    name: format.name + ending,
    format,
    compression,
    extensions: format.extensions.map((extension) => extension + ending),
  })),
);

/** The values of --format. */
export const CORPUS_FORMATS: readonly string[] = FILE_FORMATS.map(({ name }) => name);

export const KNOWN_EXTENSIONS: readonly string[] = FILE_FORMATS.flatMap(({ extensions }) => extensions);

/** The format of a file name, ignoring case; undefined for an unknown extension. */
export function formatOfName(path: string): FileFormat | undefined {
  const lowerCase = path.toLowerCase();
  return FILE_FORMATS.find(({ extensions }) => extensions.some((extension) => lowerCase.endsWith(extension)));
}

/**
 * The format with a name of --format.
 *
 * @throws TrawlError USAGE for another name.
 */
export function formatNamed(name: string): FileFormat {
  const found = FILE_FORMATS.find((each) => each.name === name);
  if (found !== undefined) return found;
  throw new TrawlError('USAGE', `format is ${JSON.stringify(name)}, expected one of ${CORPUS_FORMATS.join(', ')}.`);
}

/** What makes JSONL, or a file of a known name, of files with other suffixes. */
const CONVERSIONS: Readonly<Record<string, (path: string) => string>> = {
  '.json': (path) => `write one object a line if it is a JSON array: jq -c '.[]' ${path} > ${path}l`,
  '.csv': (path) =>
    `convert it: python3 -c "import csv, json, sys; [print(json.dumps(row)) for row in csv.DictReader(sys.stdin)]" < ${path} > ${path}.jsonl`,
  '.xz': (path) => `unpack it: xz -dk ${path}`,
  '.bz2': (path) => `unpack it: bzip2 -dk ${path}`,
  '.zip': (path) => `unpack it: unzip ${path}`,
};

/**
 * @param head the first bytes of the file.
 * @throws TrawlError CORPUS_FORMAT_UNKNOWN that says what the file is, if its name or these bytes tell.
 */
export function refuseUnknownFormat(path: string, head: Uint8Array): never {
  const [, convert] = Object.entries(CONVERSIONS).find(([suffix]) => path.toLowerCase().endsWith(suffix)) ?? [];
  if (convert === undefined && compressionOf(head) === 'none') checkIsText(path, head);
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    `The format of ${path} is unknown: expected a name that ends in ${KNOWN_EXTENSIONS.join(', ')}. If it has one of these formats, set ` +
      `--format ${CORPUS_FORMATS.join('|')}; otherwise ${convert?.(quoteForShell(path)) ?? 'convert it, such as to JSONL'}.`,
    { details: { path } },
  );
}

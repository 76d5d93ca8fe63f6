import { createHash } from 'node:crypto';
import { throwIfCancelled } from '../src/base/abort.ts';
import { TrawlError } from '../src/base/errors.ts';
import type { BadRow } from './check-row.ts';
import type { LineRange } from './corpus-format.ts';
import { type CorpusFile, listCorpusFiles } from './list-corpus-files.ts';
import { formatLocation, type Passage } from './passage.ts';
import { DEFAULT_MAX_LINE_BYTES } from './read-lines.ts';
import type { ColumnNames } from './row-columns.ts';
import { type CorpusScan, LINES_PER_OFFSET } from './scan-corpus.ts';
import { TSV_ID_TYPES, TSV_LAYOUTS, type TsvIdType } from './tsv-layout.ts';

/** Limit of the examples of bad lines in reports. */
export const MAX_EXAMPLES = 10;

export interface CorpusOptions {
  /** Format of all files, one of CORPUS_FORMATS. Default: by their names. */
  format?: string;
  /** Names of columns, in files of any format. They take precedence over the usual names. */
  columns?: ColumnNames;
  /** Columns of TSV files: one of TSV_LAYOUTS, or their names with commas between. Default: `auto`. */
  tsvLayout?: string;
  /** Type of the ids in TSV files. Default: `auto`. */
  tsvIdType?: TsvIdType;
  /** Skip bad lines instead of failing at the first. Default: false. */
  skipBadLines?: boolean;
  /** Compute the SHA-256 of each file while reading it, about a second per GB. Never of a part. Default: true. */
  checksums?: boolean;
  /** A longer line is a bad line. Default: 64 MiB. */
  maxLineBytes?: number;
  /** Stops reading with CANCELLED. */
  signal?: AbortSignal;
  /** Read only these input positions. */
  part?: CorpusPart;
  /** Called for each skipped line, with the number of its file in the corpus. */
  onSkipped?: (fileIndex: number, line: number, message: string) => void;
}

/** Input positions [first, end) of a scanned corpus. */
export interface CorpusPart {
  readonly scan: CorpusScan;
  readonly first: number;
  readonly end: number;
}

/** The passages of a corpus, in order. Every iteration reads from the start. */
export interface Corpus extends AsyncIterable<Passage> {
  readonly files: readonly CorpusFile[];
  /** Progress so far, or the totals after the loop. */
  readonly report: CorpusReport;
  /** The same files, read with other options. */
  with(changes: CorpusOptions): Corpus;
}

interface CorpusReport {
  readonly files: readonly Readonly<FileProgress>[];
  readonly readBytes: number;
  /** Size on disk when the corpus was listed. */
  readonly sizeBytes: number;
}

interface FileProgress {
  readonly path: string;
  /** Bytes read from disk so far. For Parquet, 0 until all rows are read, then the whole size. */
  readBytes: number;
  /** SHA-256 of the file in hex; null until it is read to its end, or without checksums. */
  sha256: string | null;
}

/**
 * Opens files and directories as one corpus. Checks paths and options now; reads the files during iteration, in memory
 * bounded by the longest line (for Parquet, the largest row group).
 *
 * @throws TrawlError USAGE, and the errors of `listCorpusFiles`.
 */
export function openCorpus(paths: readonly string[], options: CorpusOptions = {}): Corpus {
  checkOptions(options);
  return corpusOf(listCorpusFiles(paths, options.format), options);
}

function corpusOf(files: readonly CorpusFile[], options: CorpusOptions): Corpus {
  const begin = (): FileProgress[] => files.map(({ path }) => ({ path, readBytes: 0, sha256: null }));
  let progress = begin();
  return {
    files,
    with: (changes) => corpusOf(files, { ...options, ...changes }),
    get report() {
      const readBytes = progress.reduce((sum, file) => sum + file.readBytes, 0);
      return {
        files: progress.map((file) => ({ ...file })),
        readBytes,
        sizeBytes: files.reduce((sum, file) => sum + file.sizeBytes, 0),
      };
    },
    async *[Symbol.asyncIterator]() {
      progress = begin();
      let base = 0;
      for (const [index, file] of files.entries()) {
        const range = options.part && lineRange(options.part, index, base);
        base += options.part?.scan.files[index]?.positions ?? 0;
        if (range !== undefined && range.first >= range.end) continue;
        yield* readFile(file, { index, range, progress: progress[index]! }, options);
      }
    },
  };
}

function checkOptions({ tsvLayout, tsvIdType, maxLineBytes = DEFAULT_MAX_LINE_BYTES }: CorpusOptions): void {
  const layouts = [...TSV_LAYOUTS, 'the names of the columns with commas between, such as id,text,title'];
  if (tsvLayout?.includes(',') !== true) checkChoice('tsvLayout', tsvLayout, layouts);
  checkChoice('tsvIdType', tsvIdType, TSV_ID_TYPES);
  if (Number.isSafeInteger(maxLineBytes) && maxLineBytes >= 1) return;
  throw new TrawlError('USAGE', `maxLineBytes is ${maxLineBytes}, expected a whole number from 1.`);
}

function checkChoice(name: string, value: string | undefined, choices: readonly string[]): void {
  if (value === undefined || choices.includes(value)) return;
  throw new TrawlError(
    'USAGE',
    `${name} is ${JSON.stringify(value)}, expected one of ${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}.`,
  );
}

/** The lines of a file in the part. The file's first line has position `base`. */
function lineRange({ scan, first, end }: CorpusPart, index: number, base: number): LineRange {
  const { positions, lineOffsets } = scan.files[index]!;
  const from = Math.max(first - base, 0) + 1;
  const known = Math.min(Math.floor((from - 1) / LINES_PER_OFFSET), lineOffsets.length - 1);
  return {
    first: from,
    end: Math.min(end - base, positions) + 1,
    seek: known < 1 ? undefined : { line: known * LINES_PER_OFFSET + 1, offset: lineOffsets[known]! },
  };
}

async function* readFile(
  { path, format: { format, compression } }: CorpusFile,
  { index, range, progress }: { index: number; range: LineRange | undefined; progress: FileProgress },
  options: CorpusOptions,
): AsyncGenerator<Passage, void> {
  const { columns = {}, tsvLayout = 'auto', tsvIdType = 'auto', maxLineBytes = DEFAULT_MAX_LINE_BYTES } = options;
  const hash = options.checksums !== false && options.part === undefined ? createHash('sha256') : undefined;
  const onRead = (chunk: Buffer): void => {
    progress.readBytes += chunk.length;
    hash?.update(chunk);
  };
  const rows = format.rows({ path, compression, maxLineBytes, columns, tsvLayout, tsvIdType, onRead, range });
  for await (const batch of rows) {
    throwIfCancelled(options.signal);
    for (const row of batch) {
      const location = { file: path, line: row.line };
      if (row.ok) yield { id: row.id, document: row.document, row: row.row, location, fileIndex: index };
      else if (!options.skipBadLines) throw badLine(path, row);
      else options.onSkipped?.(index, row.line, `${formatLocation(location)}: ${row.reason}`);
    }
  }
  progress.sha256 = hash?.digest('hex') ?? null;
}

function badLine(file: string, { line, reason }: BadRow): TrawlError {
  return new TrawlError(
    'CORPUS_BAD_LINE',
    `${formatLocation({ file, line })}: ${reason}. Fix the line, or skip bad lines with --skip-bad-lines.`,
    { details: { file, line } },
  );
}

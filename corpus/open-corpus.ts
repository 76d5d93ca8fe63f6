import { TrawlError } from '../src/errors.ts';
import type { BadRow, ReaderContext, ReadRow } from './check-row.ts';
import { CORPUS_FORMATS, type CorpusFormat, compressionOf } from './corpus-format.ts';
import { type CorpusReport, FileCounters, MAX_EXAMPLES, summarize } from './corpus-report.ts';
import { type CorpusFile, listCorpusFiles } from './list-corpus-files.ts';
import { formatLocation, type Passage } from './passage.ts';
import { readJsonl } from './read-jsonl.ts';
import { DEFAULT_MAX_LINE_BYTES } from './read-lines.ts';
import { readParquet } from './read-parquet.ts';
import { readTsv, TSV_ID_TYPES, type TsvIdType } from './read-tsv.ts';
import { TSV_LAYOUTS, type TsvLayout } from './tsv-layout.ts';

export interface CorpusOptions {
  /** The kind of every file, whatever its name says. Without it the name decides. */
  format?: CorpusFormat | undefined;
  /** Order of the columns of TSV files. Default `auto`. */
  tsvLayout?: TsvLayout | undefined;
  /** Type of the ids of TSV files. Default `auto`. */
  tsvIdType?: TsvIdType | undefined;
  /** Pass over lines that cannot be used, and count them, instead of failing at the first. Default false. */
  skipBadLines?: boolean | undefined;
  /** Compute the SHA-256 of each file while it is read; costs about a second per GB. Default true. */
  checksums?: boolean | undefined;
  /** A line of more bytes is a bad line. Default 64 MiB. */
  maxLineBytes?: number | undefined;
  /** Stops the reading with CANCELLED. */
  signal?: AbortSignal | undefined;
}

/** The passages of a corpus, in order, and what has been read so far. Iterating again reads again from the start. */
export interface Corpus extends AsyncIterable<Passage> {
  readonly files: readonly CorpusFile[];
  /** A snapshot; read it when the loop is over, or within it for progress. */
  readonly report: CorpusReport;
}

interface ResolvedOptions {
  readonly tsvLayout: TsvLayout;
  readonly tsvIdType: TsvIdType;
  readonly skipBadLines: boolean;
  readonly checksums: boolean;
  readonly maxLineBytes: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Opens files and directories as one corpus. Paths and options are checked here; the files are read while the passages
 * are taken, in memory bounded by the longest line (by the largest row group for Parquet).
 */
export function openCorpus(paths: readonly string[], options: CorpusOptions = {}): Corpus {
  const resolved = resolve(options);
  const files = listCorpusFiles(paths, options.format);
  let counters: readonly FileCounters[] = [];
  let skippedExamples: string[] = [];
  const restart = (): void => {
    counters = files.map((file) => new FileCounters(file, resolved.checksums));
    skippedExamples = [];
  };
  restart();

  return {
    files,
    get report() {
      return summarize(counters, skippedExamples);
    },
    async *[Symbol.asyncIterator]() {
      restart();
      for (const [position, file] of files.entries()) {
        yield* readFile(file, counters[position]!, skippedExamples, resolved);
      }
    },
  };
}

function resolve(options: CorpusOptions): ResolvedOptions {
  checkChoice('format', options.format, CORPUS_FORMATS);
  checkChoice('tsvLayout', options.tsvLayout, TSV_LAYOUTS);
  checkChoice('tsvIdType', options.tsvIdType, TSV_ID_TYPES);
  const maxLineBytes = options.maxLineBytes ?? DEFAULT_MAX_LINE_BYTES;
  if (!Number.isSafeInteger(maxLineBytes) || maxLineBytes < 1) {
    throw new TrawlError('USAGE', `maxLineBytes is ${maxLineBytes}, expected a whole number from 1.`);
  }
  return {
    tsvLayout: options.tsvLayout ?? 'auto',
    tsvIdType: options.tsvIdType ?? 'auto',
    skipBadLines: options.skipBadLines ?? false,
    checksums: options.checksums ?? true,
    maxLineBytes,
    signal: options.signal,
  };
}

function checkChoice(name: string, value: string | undefined, choices: readonly string[]): void {
  if (value === undefined || choices.includes(value)) return;
  throw new TrawlError('USAGE', `${name} is ${JSON.stringify(value)}, expected one of ${choices.join(', ')}.`);
}

async function* readFile(
  file: CorpusFile,
  counters: FileCounters,
  skippedExamples: string[],
  options: ResolvedOptions,
): AsyncGenerator<Passage, void> {
  const context = { path: file.path, maxLineBytes: options.maxLineBytes, onRead: counters.onRead };
  for await (const batch of readRows(file.format, context, options)) {
    if (options.signal?.aborted) {
      throw new TrawlError('CANCELLED', 'The reading of the corpus was cancelled.', { cause: options.signal.reason });
    }
    for (const row of batch) {
      const location = { file: file.path, line: row.line };
      if (row.ok) {
        counters.passages += 1;
        yield { id: row.id, document: row.document, row: row.row, location };
        continue;
      }
      if (!options.skipBadLines) throw badLine(file.path, row);
      counters.skippedLines += 1;
      if (skippedExamples.length < MAX_EXAMPLES) skippedExamples.push(`${formatLocation(location)}: ${row.reason}`);
    }
  }
  counters.finish();
}

function readRows(
  format: CorpusFormat,
  context: ReaderContext,
  { tsvLayout, tsvIdType }: ResolvedOptions,
): AsyncGenerator<readonly ReadRow[], void> {
  const compression = compressionOf(format);
  switch (format) {
    case 'jsonl':
    case 'jsonl.gz':
    case 'jsonl.zst':
      return readJsonl(context, { compression });
    case 'tsv':
    case 'tsv.gz':
    case 'tsv.zst':
      return readTsv(context, { compression, layout: tsvLayout, idType: tsvIdType });
    case 'parquet':
      return readParquet(context);
  }
}

function badLine(file: string, { line, reason }: BadRow): TrawlError {
  return new TrawlError(
    'CORPUS_BAD_LINE',
    `${formatLocation({ file, line })}: ${reason}. Mend the line, or pass over such lines with --skip-bad-lines.`,
    { details: { file, line } },
  );
}

import { TrawlError } from '../src/base/errors.ts';
import type { BadRow } from './check-row.ts';
import type { LineRange } from './corpus-format.ts';
import { type CorpusReport, FileCounters, MAX_EXAMPLES, summarize } from './corpus-report.ts';
import { type CorpusFile, listCorpusFiles } from './list-corpus-files.ts';
import { formatLocation, type Passage } from './passage.ts';
import { DEFAULT_MAX_LINE_BYTES } from './read-lines.ts';
import { type CorpusScan, LINES_PER_OFFSET } from './scan-corpus.ts';
import { TSV_ID_TYPES, TSV_LAYOUTS, type TsvIdType, type TsvLayout } from './tsv-layout.ts';

export interface CorpusOptions {
  /** Format of all files, one of CORPUS_FORMATS. Default: by their names. */
  format?: string;
  /** Columns of TSV files. Default: `auto`. */
  tsvLayout?: TsvLayout;
  /** Type of the ids in TSV files. Default: `auto`. */
  tsvIdType?: TsvIdType;
  /** Skip and count bad lines instead of failing at the first. Default: false. */
  skipBadLines?: boolean;
  /** Compute the SHA-256 of each file while reading it, about a second per GB. Default: true. */
  checksums?: boolean;
  /** A longer line is a bad line. Default: 64 MiB. */
  maxLineBytes?: number;
  /** Stops reading with CANCELLED. */
  signal?: AbortSignal;
  /** Read only these input positions, without checksums. */
  part?: CorpusPart;
  /** Called for each skipped line, with the number of its file in the corpus. */
  onSkipped?: ((fileIndex: number, line: number, message: string) => void) | undefined;
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
}

interface ResolvedOptions {
  readonly tsvLayout: TsvLayout;
  readonly tsvIdType: TsvIdType;
  readonly skipBadLines: boolean;
  readonly checksums: boolean;
  readonly maxLineBytes: number;
  readonly signal: AbortSignal | undefined;
  readonly part: CorpusPart | undefined;
  readonly onSkipped: CorpusOptions['onSkipped'];
}

/**
 * Opens files and directories as one corpus. Checks paths and options now; reads the files during iteration, in memory
 * bounded by the longest line (for Parquet, the largest row group).
 *
 * @throws TrawlError USAGE, and the errors of `listCorpusFiles`.
 */
export function openCorpus(paths: readonly string[], options: CorpusOptions = {}): Corpus {
  const resolved = resolve(options);
  return corpusOf(listCorpusFiles(paths, options.format), resolved);
}

/** As `openCorpus`, of files that are listed already. */
export function readCorpus(files: readonly CorpusFile[], options: CorpusOptions): Corpus {
  return corpusOf(files, resolve(options));
}

function corpusOf(files: readonly CorpusFile[], resolved: ResolvedOptions): Corpus {
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
      let base = 0;
      for (const [index, file] of files.entries()) {
        const range = resolved.part && lineRange(resolved.part, index, base);
        base += resolved.part?.scan.files[index]?.positions ?? 0;
        if (range !== undefined && range.first >= range.end) continue;
        yield* readFile(file, { index, range, counters: counters[index]!, skippedExamples }, resolved);
      }
    },
  };
}

function resolve(options: CorpusOptions): ResolvedOptions {
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
    checksums: (options.checksums ?? true) && options.part === undefined,
    maxLineBytes,
    signal: options.signal,
    part: options.part,
    onSkipped: options.onSkipped,
  };
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

function checkChoice(name: string, value: string | undefined, choices: readonly string[]): void {
  if (value === undefined || choices.includes(value)) return;
  throw new TrawlError('USAGE', `${name} is ${JSON.stringify(value)}, expected one of ${choices.join(', ')}.`);
}

interface FileReading {
  readonly index: number;
  readonly range: LineRange | undefined;
  readonly counters: FileCounters;
  readonly skippedExamples: string[];
}

async function* readFile(
  file: CorpusFile,
  { index, range, counters, skippedExamples }: FileReading,
  options: ResolvedOptions,
): AsyncGenerator<Passage, void> {
  const { format, compression } = file.format;
  const { tsvLayout, tsvIdType, maxLineBytes } = options;
  const { onRead } = counters;
  const context = { path: file.path, compression, maxLineBytes, tsvLayout, tsvIdType, onRead, range };
  for await (const batch of format.read(context)) {
    if (options.signal?.aborted) {
      throw new TrawlError('CANCELLED', 'Reading the corpus was cancelled.', { cause: options.signal.reason });
    }
    for (const row of batch) {
      const location = { file: file.path, line: row.line };
      if (row.ok) {
        counters.passages += 1;
        yield { id: row.id, document: row.document, row: row.row, location, fileIndex: index };
        continue;
      }
      if (!options.skipBadLines) throw badLine(file.path, row);
      counters.skippedLines += 1;
      const message = `${formatLocation(location)}: ${row.reason}`;
      if (skippedExamples.length < MAX_EXAMPLES) skippedExamples.push(message);
      options.onSkipped?.(index, row.line, message);
    }
  }
  counters.finish();
}

function badLine(file: string, { line, reason }: BadRow): TrawlError {
  return new TrawlError(
    'CORPUS_BAD_LINE',
    `${formatLocation({ file, line })}: ${reason}. Fix the line, or skip bad lines with --skip-bad-lines.`,
    { details: { file, line } },
  );
}

import { realpathSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { FILE_FORMATS, type FileFormat, formatNamed, formatOfName } from '../../corpus/corpus-formats.ts';
import { type CorpusFile, listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import { MAX_EXAMPLES } from '../../corpus/open-corpus.ts';
import { formatLocation } from '../../corpus/passage.ts';
import { jsonl } from '../../corpus/read-jsonl.ts';
import { tsv } from '../../corpus/read-tsv.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { availableCores } from '../../src/base/system/cores.ts';
import { PartialFile } from '../../src/base/system/partial-file.ts';
import { type DocumentBatch, documentBatches, MAX_LINE_BYTES } from './document-batches.ts';
import type { IdSource, RowOptions } from './format-rows.ts';
import { openRule, type RuleOptions } from './open-rule.ts';
import { type BadLine, type BatchJob, openPreparePool, type PreparePool } from './prepare-pool.ts';

export const DOCUMENT_FORMATS: readonly string[] = FILE_FORMATS.filter(({ format }) => format === jsonl).map(
  ({ name }) => name,
);

export interface PrepareOptions extends RuleOptions {
  readonly documents: readonly string[];
  readonly format?: string;
  /** Path of the output. Its suffix selects the format: .jsonl or .tsv, optionally followed by .gz or .zst. */
  readonly out: string;
  readonly overwrite?: boolean;
  readonly idFrom?: IdSource;
  /** See `RowOptions`. Default true. */
  readonly columns?: boolean;
  readonly skipBadLines?: boolean;
  /** Worker threads. Default: the cores that this process may use. Does not affect the output. */
  readonly workers?: number;
  readonly onProgress?: (progress: PrepareProgress) => void;
  readonly signal?: AbortSignal;
}

export interface PrepareProgress {
  readonly documents: number;
  readonly passages: number;
  readonly readBytes: number;
  /** Total size of the files on disk; a pipe counts 0. */
  readonly sizeBytes: number;
  readonly writtenBytes: number;
}

export interface PrepareSummary extends PrepareProgress {
  readonly out: string;
  readonly rule: string;
  readonly emptyDocuments: number;
  readonly skippedLines: number;
  readonly skippedExamples: readonly string[];
  readonly sha256: string;
  readonly workers: number;
  readonly elapsedMs: number;
}

/**
 * Splits documents into passages and writes them to one file, in the order of the documents. Memory: a few batches of 1 MiB
 * per worker, plus the longest document. After an error, `out` is as it was before the call.
 *
 * @throws TrawlError USAGE, the CORPUS_ errors, OUTPUT_EXISTS, OUTPUT_NOT_WRITABLE, DISK_FULL or CANCELLED.
 */
export async function preparePassages(options: PrepareOptions): Promise<PrepareSummary> {
  const startedAt = performance.now();
  const { row, compression } = await checkOutput(options);
  const files = listDocuments(options.documents, options.format);
  checkNotInput(options.out, files);
  const { rule, size, overlap, model, workers = availableCores() } = options;
  const pool = await openPreparePool({ rule: { rule, size, overlap, model }, row, compression }, workers);
  try {
    const output = await PartialFile.create(options.out, options.overwrite ?? false);
    try {
      const written = await writePassages(options, pool, output, files);
      const sha256 = await output.publish();
      return { out: output.path, rule, ...written, sha256, workers, elapsedMs: performance.now() - startedAt };
    } catch (error) {
      await output.discard();
      throw error;
    }
  } finally {
    await pool.close();
  }
}

async function checkOutput(
  options: PrepareOptions,
): Promise<{ row: RowOptions; compression: FileFormat['compression'] }> {
  const found = formatOfName(options.out);
  const format = found?.format;
  if (found === undefined || (format !== jsonl && format !== tsv)) {
    throw new TrawlError(
      'USAGE',
      `The suffix of ${options.out} does not name an output format. Use .jsonl or .tsv, followed by .gz or .zst to compress it.`,
    );
  }
  const rule = await openRule(options);
  if (format === tsv && rule.tsv === null) {
    throw new TrawlError(
      'USAGE',
      `Rows of the rule ${options.rule} contain line ends, which TSV cannot represent: write .jsonl, not ${options.out}.`,
    );
  }
  const row = {
    format: format === tsv ? ('tsv' as const) : ('jsonl' as const),
    idFrom: options.idFrom ?? 'position',
    columns: options.columns ?? true,
  };
  return { row, compression: found.compression };
}

function checkNotInput(out: string, files: readonly CorpusFile[]): void {
  let target: string;
  try {
    target = realpathSync(out);
  } catch {
    return;
  }
  if (files.some(({ path }) => realpathSync(resolve(path)) === target)) {
    throw new TrawlError('USAGE', `${out} is one of the document files. Choose another --out.`);
  }
}

/** Lists the document files in reading order (see `listCorpusFiles`). Throws CORPUS_FORMAT_UNKNOWN for other formats. */
function listDocuments(paths: readonly string[], format: string | undefined): CorpusFile[] {
  const files = listCorpusFiles(paths, format, formatOfDocuments);
  for (const { path, format: found } of files) {
    if (found.format === jsonl) continue;
    throw new TrawlError('CORPUS_FORMAT_UNKNOWN', `${path} is ${found.name}; documents must be JSON Lines.`, {
      details: { path },
    });
  }
  return files;
}

/** Also recognises KILT's knowledge source (JSON Lines named `.json`) and WikiExtractor's files (`AA/wiki_00`). */
function formatOfDocuments(path: string): FileFormat | undefined {
  const name = basename(path).toLowerCase();
  const known = formatOfName(name);
  if (known !== undefined) return known;
  const match = /(?:\.json|^wiki_\d+)(\.gz|\.zst)?$/.exec(name);
  return match === null ? undefined : formatNamed(`${jsonl.name}${match[1] ?? ''}`);
}

type Written = Omit<PrepareSummary, 'out' | 'rule' | 'sha256' | 'workers' | 'elapsedMs'>;

/** Has the workers split the documents and format the passages, and writes them in the order of the documents. */
async function writePassages(
  { rule, skipBadLines, onProgress, signal }: PrepareOptions,
  pool: PreparePool,
  output: PartialFile,
  files: readonly CorpusFile[],
): Promise<Written> {
  const ahead = 2 * pool.workers;
  const splitting: { readonly batch: DocumentBatch; readonly job: BatchJob }[] = [];
  const formatting: Promise<Uint8Array>[] = [];
  const skippedExamples: string[] = [];
  let [documents, emptyDocuments, passages, readBytes, skippedLines] = [0, 0, 0, 0, 0];
  let isHeaderWritten = false;
  const sizeBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0);
  const progress = (): PrepareProgress => ({
    documents,
    passages,
    readBytes,
    sizeBytes,
    writtenBytes: output.bytes,
  });
  const onRead = (chunk: Buffer): void => {
    readBytes += chunk.length;
  };
  const skip = ({ file, firstLine }: DocumentBatch, { line, reason }: BadLine): void => {
    const location = { file, line: firstLine + line };
    const message = `${formatLocation(location)}: ${reason}`;
    if (skipBadLines !== true) {
      const remedy = 'Fix the line, or skip invalid lines with --skip-bad-lines.';
      throw new TrawlError('CORPUS_BAD_LINE', `${message}. ${remedy}`, { details: location });
    }
    skippedLines++;
    if (skippedExamples.length < MAX_EXAMPLES) skippedExamples.push(message);
  };
  // The numbers of a batch's passages depend on the passages of all earlier batches, so its rows are requested once it is split.
  const requestRows = async (): Promise<void> => {
    const { batch, job } = splitting.shift()!;
    const facts = await job.facts;
    if (batch.tooLong) {
      skip(batch, { line: 0, reason: `the line has more than ${MAX_LINE_BYTES} bytes; is the file one JSON array?` });
    }
    for (const bad of facts.bad) skip(batch, bad);
    documents += facts.documents;
    emptyDocuments += facts.emptyDocuments;
    formatting.push(job.format(passages, !isHeaderWritten));
    isHeaderWritten = true;
    passages += facts.passages;
  };
  const writeRows = async (): Promise<void> => {
    const bytes = await formatting.shift()!;
    if (bytes.length > 0) await output.write(bytes);
  };
  for (const file of files) {
    for await (const batch of documentBatches(file, onRead)) {
      throwIfCancelled(signal);
      splitting.push({ batch, job: pool.split(batch.bytes) });
      if (splitting.length > ahead) await requestRows();
      if (formatting.length > ahead) await writeRows();
      onProgress?.(progress());
    }
  }
  while (splitting.length > 0) await requestRows();
  while (formatting.length > 0) {
    throwIfCancelled(signal);
    await writeRows();
  }
  if (passages === 0) {
    const made = `${documents} ${documents === 1 ? 'document' : 'documents'}; no file was written.`;
    throw new TrawlError('CORPUS_EMPTY', `The rule ${rule} made no passages from ${made}`);
  }
  onProgress?.(progress());
  return { ...progress(), emptyDocuments, skippedLines, skippedExamples };
}

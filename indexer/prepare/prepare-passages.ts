import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { type FileFormat, formatOfName } from '../../corpus/corpus-formats.ts';
import { MAX_EXAMPLES } from '../../corpus/corpus-report.ts';
import type { CorpusFile } from '../../corpus/list-corpus-files.ts';
import { formatLocation } from '../../corpus/passage.ts';
import { jsonl } from '../../corpus/read-jsonl.ts';
import { tsv } from '../../corpus/read-tsv.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { availableCores } from '../../src/base/system/cores.ts';
import { PartialFile } from '../../src/base/system/partial-file.ts';
import { type DocumentBatch, documentBatches, MAX_LINE_BYTES } from './document-batches.ts';
import type { IdSource, RowOptions } from './format-rows.ts';
import { listDocuments } from './list-documents.ts';
import { openRule, type RuleOptions } from './open-rule.ts';
import type { BadLine } from './prepare-messages.ts';
import { type BatchJob, PreparePool } from './prepare-pool.ts';

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
  /** Documents without passages. */
  readonly emptyDocuments: number;
  readonly skippedLines: number;
  readonly skippedExamples: readonly string[];
  /** SHA-256 of the output file. */
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
  const { rule, size, overlap, model } = options;
  const workers = options.workers ?? availableCores();
  const pool = await PreparePool.open({ rule: { rule, size, overlap, model }, row, compression }, workers);
  try {
    const output = await PartialFile.create(options.out, options.overwrite ?? false);
    try {
      const run = new PrepareRun(options, pool, output, files);
      await run.readAll();
      const sha256 = await output.publish();
      const { path: out } = output;
      return { out, rule, ...run.summary(), sha256, workers, elapsedMs: performance.now() - startedAt };
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

/** A batch that a worker splits into passages. */
interface SplittingBatch {
  readonly batch: DocumentBatch;
  readonly job: BatchJob;
}

class PrepareRun {
  readonly #options: PrepareOptions;
  readonly #pool: PreparePool;
  readonly #output: PartialFile;
  readonly #files: readonly CorpusFile[];
  /** In the order of the documents, as the output. */
  readonly #splitting: SplittingBatch[] = [];
  readonly #formatting: Promise<Uint8Array>[] = [];
  #documents = 0;
  #emptyDocuments = 0;
  #passages = 0;
  #readBytes = 0;
  #skippedLines = 0;
  #headerWritten = false;
  readonly #skippedExamples: string[] = [];

  constructor(options: PrepareOptions, pool: PreparePool, output: PartialFile, files: readonly CorpusFile[]) {
    this.#options = options;
    this.#pool = pool;
    this.#output = output;
    this.#files = files;
  }

  async readAll(): Promise<void> {
    const ahead = 2 * this.#pool.workers;
    const onRead = (chunk: Buffer): void => {
      this.#readBytes += chunk.length;
    };
    for (const file of this.#files) {
      for await (const batch of documentBatches(file, onRead)) {
        throwIfCancelled(this.#options.signal);
        this.#splitting.push({ batch, job: this.#pool.split(batch.bytes) });
        if (this.#splitting.length > ahead) await this.#numberNext();
        if (this.#formatting.length > ahead) await this.#writeNext();
        this.#options.onProgress?.(this.#progress());
      }
    }
    while (this.#splitting.length > 0) await this.#numberNext();
    while (this.#formatting.length > 0) {
      throwIfCancelled(this.#options.signal);
      await this.#writeNext();
    }
    if (this.#passages === 0) {
      throw new TrawlError(
        'CORPUS_EMPTY',
        `The rule ${this.#options.rule} made no passages from ${this.#documents} ${this.#documents === 1 ? 'document' : 'documents'}; no file was written.`,
      );
    }
    this.#options.onProgress?.(this.#progress());
  }

  summary(): PrepareProgress & Pick<PrepareSummary, 'emptyDocuments' | 'skippedLines' | 'skippedExamples'> {
    return {
      ...this.#progress(),
      emptyDocuments: this.#emptyDocuments,
      skippedLines: this.#skippedLines,
      skippedExamples: this.#skippedExamples,
    };
  }

  /**
   * Waits until the oldest batch of `#splitting` is split and requests its rows. The numbers of its passages are known only now, because
   * they depend on the passages of all earlier batches.
   */
  async #numberNext(): Promise<void> {
    const { batch, job } = this.#splitting.shift()!;
    const facts = await job.facts;
    const tooLong: BadLine[] = batch.tooLong
      ? [{ line: 0, reason: `the line has more than ${MAX_LINE_BYTES} bytes; is the file one JSON array?` }]
      : [];
    for (const bad of [...tooLong, ...facts.bad]) this.#skip(batch, bad);
    this.#documents += facts.documents;
    this.#emptyDocuments += facts.emptyDocuments;
    this.#formatting.push(job.format(this.#passages, !this.#headerWritten));
    this.#headerWritten = true;
    this.#passages += facts.passages;
  }

  #skip({ file, firstLine }: DocumentBatch, { line, reason }: BadLine): void {
    const location = { file, line: firstLine + line };
    const message = `${formatLocation(location)}: ${reason}`;
    if (this.#options.skipBadLines !== true) {
      throw new TrawlError(
        'CORPUS_BAD_LINE',
        `${message}. Fix the line, or skip invalid lines with --skip-bad-lines.`,
        { details: location },
      );
    }
    this.#skippedLines += 1;
    if (this.#skippedExamples.length < MAX_EXAMPLES) this.#skippedExamples.push(message);
  }

  async #writeNext(): Promise<void> {
    const bytes = await this.#formatting.shift()!;
    if (bytes.length > 0) await this.#output.write(bytes);
  }

  #progress(): PrepareProgress {
    return {
      documents: this.#documents,
      passages: this.#passages,
      readBytes: this.#readBytes,
      sizeBytes: this.#files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      writtenBytes: this.#output.bytes,
    };
  }
}

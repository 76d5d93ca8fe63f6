import { statSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MAX_EXAMPLES } from '../../corpus/corpus-report.ts';
import { type Corpus, type CorpusOptions, openCorpus } from '../../corpus/open-corpus.ts';
import type { PassageTemplate } from '../../corpus/passage-template.ts';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { throwIfCancelled } from '../../src/abort.ts';
import { TrawlError } from '../../src/errors.ts';
import { PASSAGES_RECORD_FILE, PassagesRecord, readRecord } from '../../src/manifest/build-records.ts';
import { syncFolder, writeJsonDurably } from '../../src/manifest/write-json.ts';
import { SqlitePassageWriter } from '../../src/passages/sqlite-passage-writer.ts';
import type { OnProgress } from '../build-events.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import type { ShardRange } from './shard-cut.ts';

/** Passages between two progress reports and looks at the signal. */
const REPORT_EVERY = 2_000;

/** A shard to be filled: its folder, and the part of the corpus that is its. */
export interface ShardPlace extends ShardRange {
  readonly folder: string;
}

export interface StoreOptions {
  readonly corpus: readonly string[];
  readonly corpusOptions: CorpusOptions;
  /** Undefined for a corpus that can be read only once: it has one shard, and is hashed while it is read. */
  readonly scan: CorpusScan | undefined;
  /** Input positions whose passages are stored. Default: all. */
  readonly only?: { has(position: number): boolean } | undefined;
  readonly onProgress: OnProgress;
  readonly signal: AbortSignal | undefined;
}

/** What is known of a shard's passages once they are stored. */
export function storedPassages(folder: string): PassagesRecord | undefined {
  return readRecord(PassagesRecord, join(folder, PASSAGES_RECORD_FILE)) ?? undefined;
}

/**
 * The first stage: every passage into the passage files, before anything is encoded. So a bad line at the end of a corpus
 * is found in minutes and not after hours, and the number of rows is known from then on. One pass over the corpus fills
 * all shards that are not filled yet; a shard that was being filled when a process ended is filled anew.
 *
 * @returns the corpus as it was read; of use where it was not scanned.
 * @throws TrawlError CORPUS_BAD_LINE, CORPUS_CHANGED, TEMPLATE_INVALID or CANCELLED.
 */
export async function storePassages(
  shards: readonly ShardPlace[],
  template: PassageTemplate,
  options: StoreOptions,
): Promise<Corpus> {
  const { scan, onProgress, signal } = options;
  const missing = shards.filter(({ folder }) => storedPassages(folder) === undefined);
  const [first, last] = [missing[0]?.first ?? 0, missing.at(-1)?.end ?? 0];
  const filler = new ShardFiller(missing);
  const bases = firstPositions(scan);
  const corpus = openCorpus(options.corpus, {
    ...options.corpusOptions,
    signal,
    ...(scan === undefined ? {} : { part: { scan, first, end: last } }),
    onSkipped: (file, line, message) => filler.skipped((bases[file] ?? 0) + line - 1, message),
  });
  if (missing.length === 0) return corpus;
  let read = 0;
  try {
    for await (const { id, document, row, location, fileIndex } of corpus) {
      const position = (bases[fileIndex] ?? 0) + location.line - 1;
      if (options.only?.has(position) === false) continue;
      // Encoding comes much later: a column that is missing should be known now.
      template(row, location);
      const passage = { id, line: location.line, document };
      // Waiting costs a turn of the event loop; most passages belong to the shard of the one before.
      if (!filler.append(position, fileIndex, passage)) {
        await filler.turnTo(position);
        filler.append(position, fileIndex, passage);
      }
      if (++read % REPORT_EVERY === 0) {
        throwIfCancelled(signal);
        onProgress({ stage: 'read', passages: read, readShare: readShare(corpus, scan && { position, first, last }) });
      }
    }
    if (scan !== undefined) checkUnchanged(scan);
    await filler.turnTo(Number.POSITIVE_INFINITY);
  } finally {
    filler.abandon();
  }
  const rows = shards.reduce((sum, { folder }) => sum + storedPassages(folder)!.rows, 0);
  onProgress({ stage: 'read', passages: rows, totalPassages: rows, readShare: 1 });
  return corpus;
}

/** Fills one shard after another as positions come. */
class ShardFiller {
  readonly #shards: readonly ShardPlace[];
  readonly #skips: { lines: number; examples: string[] }[];
  #at = -1;
  #writer: SqlitePassageWriter | undefined;
  #passagesByFile: number[] = [];

  constructor(shards: readonly ShardPlace[]) {
    this.#shards = shards;
    this.#skips = shards.map(() => ({ lines: 0, examples: [] }));
  }

  /** False where the shard at hand does not hold the position. Positions ascend. */
  append(position: number, file: number, passage: Parameters<SqlitePassageWriter['append']>[0]): boolean {
    if (this.#at >= this.#shards.length) return true;
    const shard = this.#shards[this.#at];
    if (shard === undefined || position >= shard.end) return false;
    // Between two shards that are missing lies one that is there.
    if (position < shard.first) return true;
    this.#writer!.append(passage);
    this.#passagesByFile[file] = (this.#passagesByFile[file] ?? 0) + 1;
    return true;
  }

  skipped(position: number, message: string): void {
    const skips = this.#skips[this.#shards.findIndex(({ first, end }) => position >= first && position < end)];
    if (skips === undefined) return;
    skips.lines++;
    if (skips.examples.length < MAX_EXAMPLES) skips.examples.push(message);
  }

  /** Completes the shards before the one that holds the position, and begins that one. */
  async turnTo(position: number): Promise<void> {
    while (this.#at < this.#shards.length && (this.#at < 0 || position >= this.#shards[this.#at]!.end)) {
      await this.#complete();
      this.#at++;
      await this.#begin();
    }
  }

  abandon(): void {
    this.#writer?.abandon();
  }

  async #begin(): Promise<void> {
    const shard = this.#shards[this.#at];
    if (shard === undefined) return;
    await mkdir(shard.folder, { recursive: true });
    const path = join(shard.folder, PASSAGES_FILE);
    await rm(path, { force: true });
    this.#writer = new SqlitePassageWriter(path);
    this.#passagesByFile = [];
  }

  async #complete(): Promise<void> {
    const writer = this.#writer;
    if (writer === undefined) return;
    const { folder } = this.#shards[this.#at]!;
    const { lines, examples } = this.#skips[this.#at]!;
    const sha256 = writer.finishRows();
    writer.finish();
    this.#writer = undefined;
    await syncFolder(folder);
    const record: PassagesRecord = {
      rows: writer.rows,
      rowsWithoutId: writer.rowsWithoutId,
      sha256,
      passagesByFile: Array.from(this.#passagesByFile, (count) => count ?? 0),
      skippedLines: lines,
      skippedExamples: examples,
    };
    await writeJsonDurably(join(folder, PASSAGES_RECORD_FILE), record);
  }
}

/** Position of the first line of each file. */
export function firstPositions(scan: CorpusScan | undefined): number[] {
  if (scan === undefined) return [];
  const bases = [0];
  for (const { positions } of scan.files) bases.push(bases.at(-1)! + positions);
  return bases;
}

function readShare(corpus: Corpus, at: { position: number; first: number; last: number } | undefined): number {
  if (at !== undefined) return (at.position + 1 - at.first) / (at.last - at.first);
  const { readBytes, sizeBytes } = corpus.report;
  return sizeBytes === 0 ? 1 : readBytes / sizeBytes;
}

/** Of a file that grew while it was read, an unknown part would be in the index. */
export function checkUnchanged(scan: CorpusScan): void {
  for (const { path, sizeBytes, modifiedMs } of scan.files) {
    const { size, mtimeMs } = statSync(path);
    if (size === sizeBytes && mtimeMs === modifiedMs) continue;
    throw new TrawlError(
      'CORPUS_CHANGED',
      `${path} was changed while it was read (${sizeBytes} bytes, now ${size}). Run it again when nobody writes it.`,
      { details: { path } },
    );
  }
}

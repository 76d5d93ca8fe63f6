import { statSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { MAX_EXAMPLES } from '../../corpus/corpus-report.ts';
import { type Corpus, readCorpus } from '../../corpus/open-corpus.ts';
import { formatLocation, type PassageLocation } from '../../corpus/passage.ts';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { syncFolder, writeJsonDurably } from '../../src/base/system/durable-file.ts';
import { columnValues } from '../../src/engine/columns/column-values.ts';
import type { Column } from '../../src/engine/filter/column.ts';
import { PASSAGES_RECORD_FILE, type PassagesRecord } from '../../src/index/manifest/build-records.ts';
import type { CorpusRecord } from '../../src/index/manifest/schemas.ts';
import { SqlitePassageWriter } from '../../src/index/passages/sqlite-passage-writer.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import type { Build } from './build.ts';
import { type PlannedShard, storedPassages } from './planned-shard.ts';

/** Passages between two progress reports. Each report also checks the signal. */
const REPORT_EVERY = 2_000;

/** Record of a corpus file in a manifest, without its number of passages. */
export type CorpusFileRecord = Readonly<Omit<CorpusRecord['files'][number], 'passages'>>;

/**
 * Writes the passages of all shards to their passage files, in one pass over the corpus. Runs before embedding, so that a bad
 * line at the end of the corpus is reported in minutes, not after hours, and the number of rows is known. Skips shards with
 * stored passages; starts over with a shard that an earlier run filled only in part.
 *
 * @param scan undefined for a pipe, which is read only once, into a single shard, and hashed meanwhile.
 * @param only input positions to store. Default: all.
 * @returns the corpus files for the manifests.
 * @throws TrawlError CORPUS_BAD_LINE, CORPUS_CHANGED, TEMPLATE_INVALID or CANCELLED.
 */
export async function storePassages(
  { files, corpusOptions, template, columns, clock, onProgress, signal }: Build,
  shards: readonly PlannedShard[],
  scan: CorpusScan | undefined,
  only?: { has(position: number): boolean },
): Promise<readonly CorpusFileRecord[]> {
  clock.start('read');
  onProgress({ stage: 'read', passages: 0, readShare: 0 });
  const missing = shards.filter(({ folder }) => storedPassages(folder) === undefined);
  const [first, last] = [missing[0]?.first ?? 0, missing.at(-1)?.end ?? 0];
  const filler = new ShardFiller(missing);
  const bases = firstPositions(scan);
  const corpus = readCorpus(files, {
    ...corpusOptions,
    signal,
    part: scan && { scan, first, end: last },
    onSkipped: (file, line, message) => filler.skipped((bases[file] ?? 0) + line - 1, message),
  });
  if (missing.length > 0) {
    let read = 0;
    try {
      for await (const { id, document, row, location, fileIndex } of corpus) {
        const position = (bases[fileIndex] ?? 0) + location.line - 1;
        if (only?.has(position) === false) continue;
        // Report a missing column now: the texts are embedded much later.
        template(row, location);
        checkColumns(document, location, columns);
        const passage = { id, line: location.line, document };
        // Only the first passage of a shard needs the await.
        if (!filler.append(position, fileIndex, passage)) {
          await filler.advanceTo(position);
          filler.append(position, fileIndex, passage);
        }
        if (++read % REPORT_EVERY === 0) {
          throwIfCancelled(signal);
          onProgress({
            stage: 'read',
            passages: read,
            readShare: readShare(corpus, scan && { position, first, last }),
          });
        }
      }
      if (scan !== undefined) checkCorpusUnchanged(scan);
      await filler.advanceTo(Number.POSITIVE_INFINITY);
    } finally {
      filler.abandon();
    }
    const rows = shards.reduce((sum, { folder }) => sum + storedPassages(folder)!.rows, 0);
    onProgress({ stage: 'read', passages: rows, totalPassages: rows, readShare: 1 });
  }
  if (scan !== undefined) return fileRecords(scan);
  // A pipe was hashed while it was read.
  return corpus.report.files.map(({ path, readBytes, sha256 }) => ({
    name: basename(path),
    bytes: readBytes,
    sha256: sha256!,
  }));
}

/** The corpus files as a manifest records them. */
export function fileRecords(scan: CorpusScan): readonly CorpusFileRecord[] {
  return scan.files.map(({ path, sizeBytes, sha256 }) => ({ name: basename(path), bytes: sizeBytes, sha256 }));
}

/** @throws TrawlError CORPUS_BAD_LINE for a value of another type than its column's. */
function checkColumns(document: string, location: PassageLocation, columns: readonly Column[]): void {
  if (columns.length === 0) return;
  const row: unknown = JSON.parse(document);
  for (const column of columns) {
    const values = columnValues(row, column);
    if (!('wrong' in values)) continue;
    throw new TrawlError(
      'CORPUS_BAD_LINE',
      `${formatLocation(location)}: the column ${values.wrong}. Correct the value, or declare another type with --column.`,
      { details: { ...location, column: column.name } },
    );
  }
}

/** Fills one shard after another, with passages in the order of their positions. */
class ShardFiller {
  readonly #shards: readonly PlannedShard[];
  readonly #skips: { lines: number; examples: string[] }[];
  #current = -1;
  #writer: SqlitePassageWriter | undefined;
  #passagesByFile: number[] = [];

  constructor(shards: readonly PlannedShard[]) {
    this.#shards = shards;
    this.#skips = shards.map(() => ({ lines: 0, examples: [] }));
  }

  /** False if the current shard ends before the position: `advanceTo` it first. */
  append(position: number, file: number, passage: Parameters<SqlitePassageWriter['append']>[0]): boolean {
    if (this.#current >= this.#shards.length) return true;
    const shard = this.#shards[this.#current];
    if (shard === undefined || position >= shard.end) return false;
    // The position belongs to a shard that already has its passages.
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

  /** Completes the shards that end before the position, and begins the next. */
  async advanceTo(position: number): Promise<void> {
    while (this.#current < this.#shards.length && (this.#current < 0 || position >= this.#shards[this.#current]!.end)) {
      await this.#complete();
      this.#current++;
      await this.#begin();
    }
  }

  abandon(): void {
    this.#writer?.abandon();
  }

  async #begin(): Promise<void> {
    const shard = this.#shards[this.#current];
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
    const { folder } = this.#shards[this.#current]!;
    const { lines, examples } = this.#skips[this.#current]!;
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

/** The input position of the first line of each file. */
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

/** @throws TrawlError CORPUS_CHANGED if a file changed since the scan: the checksums would not match the passages. */
export function checkCorpusUnchanged(scan: CorpusScan): void {
  for (const { path, sizeBytes, modifiedMs } of scan.files) {
    const { size, mtimeMs } = statSync(path);
    if (size === sizeBytes && mtimeMs === modifiedMs) continue;
    throw new TrawlError(
      'CORPUS_CHANGED',
      `${path} changed while it was read (${sizeBytes} bytes, now ${size}). Run the command again when no other program ` +
        'writes the file.',
      { details: { path } },
    );
  }
}

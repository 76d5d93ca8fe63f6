import { existsSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { formatOfName } from '../corpus/corpus-format.ts';
import { freeBytes } from '../indexer/disk-room.ts';
import { PartialFile } from '../prepare/partial-file.ts';
import { TrawlError } from '../src/errors.ts';
import { type IndexDirectory, openIndexDirectory } from '../src/retrieval/index-directory.ts';
import { DTYPE_BYTES, type VectorDtype } from '../src/vector-index/vector-segments.ts';
import { type ExportedPassage, passagesOf, type RowChoice } from './index-rows.ts';
import { idLine, packingOf, writeLines } from './write-lines.ts';
import { faissHeader, npyHeader, type Sink, writeVectors } from './write-vectors.ts';

export const EXPORT_KINDS = ['faiss', 'npy', 'parquet', 'corpus', 'ids', 'row-numbers'] as const;
export type ExportKind = (typeof EXPORT_KINDS)[number];

export interface ExportOptions {
  readonly index: string;
  /** The file of each kind that is wanted. */
  readonly files: Readonly<Partial<Record<ExportKind, string>>>;
  /** FAISS and .npy hold float16; every value has to be one. */
  readonly float16?: boolean;
  /** Leaves out removed rows, in all files: the rows behind them move up. */
  readonly dropRemoved?: boolean;
  readonly overwrite?: boolean;
  readonly onProgress?: (progress: ExportProgress) => void;
  readonly signal?: AbortSignal | undefined;
}

export interface ExportProgress {
  /** The file being written. */
  readonly path: string;
  readonly rows: number;
  readonly totalRows: number;
  readonly writtenBytes: number;
}

export interface ExportedFile {
  readonly kind: ExportKind;
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface ExportSummary {
  readonly folder: string;
  /** Rows of every file. */
  readonly rows: number;
  readonly dimension: number;
  readonly metric: string;
  readonly dtype: VectorDtype;
  /** Rows of the index that are removed: left out, or, without `dropRemoved`, among the rows. */
  readonly removedRows: number;
  /** Rows without an id, in whose place the ids have the row number; null where no ids were written. */
  readonly rowsWithoutId: number | null;
  readonly files: readonly ExportedFile[];
}

/** One file to be written. */
interface Output {
  readonly kind: ExportKind;
  readonly path: string;
  /** Bytes it takes, about. */
  readonly bytes: number;
}

/**
 * Writes an index as files of other tools, row by row in the same order, each to `<file>.partial` and then under its name.
 * Memory does not depend on the index.
 *
 * @throws TrawlError USAGE, the codes of opening an index, OUTPUT_EXISTS, OUTPUT_NOT_WRITABLE, DISK_FULL, NOT_SUPPORTED,
 * CANCELLED; a file that was not finished then is not there.
 */
export async function exportIndex(options: ExportOptions): Promise<ExportSummary> {
  const directory = openIndexDirectory(options.index);
  const { manifest, folder } = directory;
  const removedRows = manifest.tombstones?.rows ?? 0;
  const isDropping = options.dropRemoved === true && removedRows > 0;
  const rows = manifest.rows - (isDropping ? removedRows : 0);
  const dtype = options.float16 === true ? 'float16' : 'float32';
  const choice: RowChoice = { kept: isDropping ? directory.source.alive : undefined, signal: options.signal };
  if (isDropping) checkCount(directory, removedRows);
  const outputs = plannedOutputs(directory, options, { rows, dtype });
  await checkRoom(outputs);
  const run = new ExportRun(directory, { rows, dtype }, choice, options);
  const files: ExportedFile[] = [];
  for (const output of outputs) files.push(await run.write(output));
  const { dimension, metric } = manifest;
  const rowsWithoutId = options.files.ids === undefined ? null : run.rowsWithoutId;
  return { folder, rows, dimension, metric, dtype, removedRows, rowsWithoutId, files };
}

/** The header tells the rows before they are written, so the bitmap has to have as many as its manifest says. */
function checkCount({ folder, manifest, source }: IndexDirectory, removedRows: number): void {
  const found = manifest.rows - (source.alive?.count() ?? manifest.rows);
  if (found === removedRows) return;
  throw new TrawlError(
    'INDEX_FILE_FOREIGN',
    `${join(folder, manifest.tombstones!.path)}: ${found} rows are removed, the manifest says ${removedRows}. Copy it again, or ` +
      'leave --drop-removed out.',
  );
}

class ExportRun {
  rowsWithoutId = 0;
  readonly #directory: IndexDirectory;
  readonly #shape: { rows: number; dtype: VectorDtype };
  readonly #choice: RowChoice;
  readonly #options: ExportOptions;

  constructor(
    directory: IndexDirectory,
    shape: { rows: number; dtype: VectorDtype },
    choice: RowChoice,
    options: ExportOptions,
  ) {
    this.#directory = directory;
    this.#shape = shape;
    this.#choice = choice;
    this.#options = options;
  }

  async write({ kind, path }: Output): Promise<ExportedFile> {
    const file = await PartialFile.create(path, this.#options.overwrite ?? false);
    try {
      let rows = 0;
      const tell = (): void =>
        this.#options.onProgress?.({ path, rows, totalRows: this.#shape.rows, writtenBytes: file.bytes });
      tell();
      await this.#content(
        kind,
        path,
        async (bytes) => {
          await file.write(bytes);
          tell();
        },
        (count) => {
          rows += count;
        },
      );
      const { bytes } = file;
      return { kind, path: file.path, bytes, sha256: await file.publish() };
    } catch (error) {
      await file.discard();
      throw error;
    }
  }

  async #content(kind: ExportKind, path: string, sink: Sink, onRows: (rows: number) => void): Promise<void> {
    switch (kind) {
      case 'faiss':
      case 'npy': {
        const { dtype } = this.#shape;
        await sink((kind === 'faiss' ? faissHeader : npyHeader)(this.#directory, this.#shape));
        const rowBytes = this.#directory.source.dimension * DTYPE_BYTES[dtype];
        await writeVectors(this.#directory, dtype, this.#choice, (bytes) => {
          onRows(bytes.length / rowBytes);
          return sink(bytes);
        });
        break;
      }
      case 'parquet': {
        const { writeParquet } = await import('./write-parquet.ts');
        await writeParquet(this.#directory, this.#choice, sink, onRows);
        break;
      }
      default:
        await writeLines(this.#lines(kind), packingOf(path), sink, () => onRows(1));
    }
  }

  async *#lines(kind: 'corpus' | 'ids' | 'row-numbers'): AsyncGenerator<string, void> {
    const lineOf: (passage: ExportedPassage) => string =
      kind === 'corpus' ? ({ document }) => document : kind === 'ids' ? idLine : ({ row }) => String(row);
    for await (const passage of passagesOf(this.#directory, this.#choice)) {
      if (kind === 'ids' && passage.id === null) this.rowsWithoutId++;
      yield lineOf(passage);
    }
  }
}

function plannedOutputs(
  directory: IndexDirectory,
  { files, float16, overwrite }: ExportOptions,
  { rows, dtype }: { rows: number; dtype: VectorDtype },
): Output[] {
  const vectorBytes = rows * directory.source.dimension * DTYPE_BYTES[dtype];
  const textBytes = directory.passages.reduce((sum, { path }) => sum + statSync(path).size, 0);
  const outputs = EXPORT_KINDS.flatMap((kind): Output[] => {
    const path = files[kind];
    if (path === undefined) return [];
    const share = packingOf(path) === 'none' ? 1 : 0.3;
    const bytes: Readonly<Record<ExportKind, number>> = {
      faiss: vectorBytes,
      npy: vectorBytes,
      parquet: rows * directory.source.dimension * 4 + textBytes * 0.3,
      // The passage file has indexes beside the text.
      corpus: textBytes * 0.7 * share,
      ids: rows * 9 * share,
      'row-numbers': rows * 9 * share,
    };
    return [{ kind, path: resolve(path), bytes: bytes[kind] }];
  });
  if (outputs.length === 0) {
    throw new TrawlError('USAGE', `Name a file to write: ${EXPORT_KINDS.map((kind) => `--${kind} FILE`).join(', ')}.`);
  }
  if (float16 === true && files.faiss === undefined && files.npy === undefined) {
    throw new TrawlError('USAGE', '--float16 is for --faiss and --npy, and neither is given.');
  }
  const seen = new Set<string>();
  for (const { kind, path } of outputs) {
    if (seen.has(path)) throw new TrawlError('USAGE', `${path} is named for two files. Give each its own name.`);
    seen.add(path);
    checkNotOfIndex(directory, path);
    if (existsSync(path) && overwrite !== true) {
      throw new TrawlError('OUTPUT_EXISTS', `${path} exists. Choose another place, or replace it with --overwrite.`);
    }
    const format = formatOfName(path);
    if (kind === 'corpus' && (format === undefined || !format.startsWith('jsonl'))) {
      throw new TrawlError(
        'USAGE',
        `--corpus writes JSON lines, and ${basename(path)} is named otherwise. Let it end in .jsonl, .jsonl.gz or .jsonl.zst.`,
      );
    }
  }
  return outputs;
}

/** Files of the index are not written over, nor are others put among them. */
function checkNotOfIndex(directory: IndexDirectory, path: string): void {
  const parent = dirname(path);
  const real = existsSync(parent) ? join(realpathSync(parent), basename(path)) : path;
  const files = directory.source.shards.flatMap(({ segments }) =>
    segments.map((segment) => realpathSync(segment.path)),
  );
  if (!real.startsWith(`${realpathSync(directory.folder)}${sep}`) && !files.includes(real)) return;
  throw new TrawlError('USAGE', `${path} is a file of the index, or lies in its folder. Choose another place.`);
}

/** @throws TrawlError DISK_FULL, by file system. */
async function checkRoom(outputs: readonly Output[]): Promise<void> {
  const byDevice = new Map<number, { path: string; bytes: number }>();
  for (const { path, bytes } of outputs) {
    const parent = dirname(path);
    const device = existsSync(parent) ? statSync(parent).dev : -1;
    const before = byDevice.get(device);
    byDevice.set(device, { path: parent, bytes: bytes + (before?.bytes ?? 0) });
  }
  for (const { path, bytes } of byDevice.values()) {
    const free = await freeBytes(path);
    if (bytes <= free) continue;
    throw new TrawlError(
      'DISK_FULL',
      `${path}: the files take about ${gigabytes(bytes)}, and ${gigabytes(free)} are free. Free space, or choose another place.`,
      { details: { neededBytes: Math.ceil(bytes), freeBytes: free } },
    );
  }
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(2)} GB`;
}

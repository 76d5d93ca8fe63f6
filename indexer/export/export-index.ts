import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { PartialFile } from '../../src/base/system/partial-file.ts';
import type { LexicalField } from '../../src/engine/lexical/lexical-settings.ts';
import { DTYPE_BYTES, type VectorDtype } from '../../src/engine/vectors/vector-segments.ts';
import { requireVectors } from '../../src/index/manifest/vector-space.ts';
import { type IndexDirectory, openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { type ExportedPassage, passagesOf, type RowChoice } from './index-rows.ts';
import {
  checkFreeSpace,
  EXPORT_KINDS,
  type ExportFiles,
  type ExportKind,
  type ExportShape,
  type PlannedOutput,
  plannedOutputs,
} from './planned-outputs.ts';
import { ciffField, writeCiff } from './write-ciff.ts';
import { compressionOfPath, idLine, writeLines } from './write-lines.ts';
import { faissHeader, npyHeader, type Sink, writeVectors } from './write-vectors.ts';

export interface ExportOptions {
  readonly index: string;
  /** The files to write. */
  readonly files: ExportFiles;
  /** Writes FAISS and .npy files in float16. Every value must be exactly representable. */
  readonly float16?: boolean;
  /** The field whose inverted index is exported. Default: contents, else the first one that the index has. */
  readonly ciffField?: LexicalField;
  /** Omits deleted rows from all files; later rows move up. A CIFF file never has them. */
  readonly dropRemoved?: boolean;
  readonly overwrite?: boolean;
  readonly onProgress?: (progress: ExportProgress) => void;
  readonly signal?: AbortSignal;
}

export interface ExportProgress {
  /** The file being written. */
  readonly path: string;
  readonly rows: number;
  readonly totalRows: number;
  readonly writtenBytes: number;
}

interface ExportedFile {
  readonly kind: ExportKind;
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface ExportSummary {
  readonly folder: string;
  /** Rows in each file. */
  readonly rows: number;
  readonly dimension: number;
  /** Null for an index without vectors. */
  readonly metric: string | null;
  readonly dtype: VectorDtype;
  /** Deleted rows of the index. With `dropRemoved`, or if only a CIFF file is written, they are omitted, otherwise exported. */
  readonly deletedRows: number;
  /** Rows without an id; the ids file has their row number instead. Null if no ids were written. */
  readonly rowsWithoutId: number | null;
  readonly files: readonly ExportedFile[];
}

/**
 * Exports an index to files that other tools read. In each file, the rows have the order of the index. Each file is written as
 * `<file>.partial` and renamed when it is complete. The memory used does not depend on the size of the index.
 *
 * @throws TrawlError USAGE, the errors of `openIndexDirectory`, OUTPUT_EXISTS, OUTPUT_NOT_WRITABLE, DISK_FULL,
 * NOT_SUPPORTED or CANCELLED.
 */
export async function exportIndex(options: ExportOptions): Promise<ExportSummary> {
  const directory = openIndexDirectory(options.index);
  const { manifest, folder } = directory;
  const { faiss, npy, parquet, ciff } = options.files;
  if ([faiss, npy, parquet].some((path) => path !== undefined)) requireVectors(folder, manifest);
  const field = ciff === undefined ? undefined : ciffField(directory, options.ciffField);
  if (ciff === undefined && options.ciffField !== undefined) {
    throw new TrawlError('USAGE', '--ciff-field only applies to --ciff, which is not given.');
  }
  const deletedRows = manifest.tombstones?.rows ?? 0;
  const omitsDeleted = deletedRows > 0 && withoutDeleted(options);
  const rows = manifest.rows - (omitsDeleted ? deletedRows : 0);
  const dtype = options.float16 === true ? 'float16' : 'float32';
  const choice: RowChoice = { kept: omitsDeleted ? directory.liveRows : undefined, signal: options.signal };
  if (omitsDeleted) checkDeletedRows(directory, deletedRows);
  const outputs = plannedOutputs(directory, options, { rows, dtype, field });
  await checkFreeSpace(outputs);
  const run = new ExportRun(directory, { rows, dtype, field }, choice, options);
  const files: ExportedFile[] = [];
  for (const output of outputs) files.push(await run.write(output));
  const { dimension, metric } = manifest;
  const rowsWithoutId = options.files.ids === undefined ? null : run.rowsWithoutId;
  return { folder, rows, dimension, metric, dtype, deletedRows, rowsWithoutId, files };
}

/**
 * Whether the files leave out deleted rows. A CIFF file always does, because its counts are those of the live rows.
 *
 * @throws TrawlError USAGE if the rows of a CIFF file and of another file would have different numbers.
 */
function withoutDeleted({ files, dropRemoved }: ExportOptions): boolean {
  if (dropRemoved === true || files.ciff === undefined) return dropRemoved === true;
  const others = EXPORT_KINDS.filter((kind) => kind !== 'ciff' && files[kind] !== undefined);
  if (others.length === 0) return true;
  throw new TrawlError(
    'USAGE',
    `The index has deleted rows. --ciff leaves them out, but --${others[0]} would have them. Add --drop-removed, or write ` +
      'the files with two commands.',
  );
}

/** File headers contain the number of rows, so the bitmap must agree with the manifest before anything is written. */
function checkDeletedRows({ folder, manifest, liveRows }: IndexDirectory, recorded: number): void {
  const found = manifest.rows - (liveRows?.count() ?? manifest.rows);
  if (found === recorded) return;
  throw new TrawlError(
    'INDEX_FILE_FOREIGN',
    `${join(folder, manifest.tombstones!.path)} has ${found} deleted rows, but the manifest says ${recorded}. Copy the file ` +
      'again, or omit --drop-removed and --ciff.',
  );
}

class ExportRun {
  rowsWithoutId = 0;
  readonly #directory: IndexDirectory;
  readonly #shape: ExportShape;
  readonly #choice: RowChoice;
  readonly #options: ExportOptions;

  constructor(directory: IndexDirectory, shape: ExportShape, choice: RowChoice, options: ExportOptions) {
    this.#directory = directory;
    this.#shape = shape;
    this.#choice = choice;
    this.#options = options;
  }

  async write({ kind, path }: PlannedOutput): Promise<ExportedFile> {
    const file = await PartialFile.create(path, this.#options.overwrite ?? false);
    try {
      let rows = 0;
      const report = (): void =>
        this.#options.onProgress?.({ path, rows, totalRows: this.#shape.rows, writtenBytes: file.bytes });
      report();
      await this.#content(
        kind,
        path,
        async (bytes) => {
          await file.write(bytes);
          report();
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
        const rowBytes = this.#directory.manifest.dimension * DTYPE_BYTES[dtype];
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
      case 'ciff': {
        let reported = 0;
        const onShare = (share: number): void => {
          const rows = Math.floor(share * this.#shape.rows);
          onRows(rows - reported);
          reported = rows;
        };
        const { signal } = this.#choice;
        const options = { field: this.#shape.field!, compression: compressionOfPath(path), signal, onShare };
        await writeCiff(this.#directory, options, sink);
        break;
      }
      default:
        await writeLines(this.#lines(kind), compressionOfPath(path), sink, () => onRows(1));
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

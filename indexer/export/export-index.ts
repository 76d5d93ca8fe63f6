import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { PartialFile } from '../../src/base/system/partial-file.ts';
import type { LexicalField } from '../../src/engine/lexical/lexical-settings.ts';
import type { VectorDtype } from '../../src/engine/vectors/vector-segments.ts';
import { requireVectors } from '../../src/index/manifest/index-manifest.ts';
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
import { compressionOfPath, idLine, type WriteContent, writeLines } from './write-lines.ts';
import { faissHeader, npyHeader, writeVectors } from './write-vectors.ts';

export interface ExportOptions {
  readonly index: string;
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
  const { faiss, npy, parquet, ciff, ids } = options.files;
  if ([faiss, npy, parquet].some((path) => path !== undefined)) requireVectors(folder, manifest);
  const field = ciff === undefined ? undefined : ciffField(directory, options.ciffField);
  if (ciff === undefined && options.ciffField !== undefined) {
    throw new TrawlError('USAGE', '--ciff-field only applies to --ciff, which is not given.');
  }
  const deletedRows = manifest.tombstones?.rows ?? 0;
  const omitsDeleted = deletedRows > 0 && withoutDeleted(options);
  if (omitsDeleted) checkDeletedRows(directory, deletedRows);
  const shape: ExportShape = {
    rows: manifest.rows - (omitsDeleted ? deletedRows : 0),
    dtype: options.float16 === true ? 'float16' : 'float32',
    field,
  };
  const choice: RowChoice = { kept: omitsDeleted ? directory.liveRows : undefined, signal: options.signal };
  const outputs = plannedOutputs(directory, options, shape);
  await checkFreeSpace(outputs);
  let rowsWithoutId = 0;
  const lines = (lineOf: (passage: ExportedPassage) => string): WriteContent =>
    writeLines(passagesOf(directory, choice), lineOf);
  const writers: Readonly<Record<ExportKind, WriteContent>> = {
    faiss: writeVectors(directory, choice, shape, faissHeader),
    npy: writeVectors(directory, choice, shape, npyHeader),
    parquet: async (output) => (await import('./write-parquet.ts')).writeParquet(directory, choice, output),
    ciff: (output) => writeCiff(directory, { field: field!, signal: options.signal }, output),
    corpus: lines(({ document }) => document),
    ids: lines((passage) => {
      if (passage.id === null) rowsWithoutId++;
      return idLine(passage);
    }),
    'row-numbers': lines(({ row }) => String(row)),
  };
  const files: ExportedFile[] = [];
  for (const output of outputs) files.push(await writeOutput(output, writers[output.kind], shape.rows, options));
  const { dimension, metric } = manifest;
  const { rows, dtype } = shape;
  return {
    folder,
    rows,
    dimension,
    metric,
    dtype,
    deletedRows,
    rowsWithoutId: ids === undefined ? null : rowsWithoutId,
    files,
  };
}

/**
 * Whether the files leave out deleted rows. A CIFF file always does, because it counts only live rows.
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

async function writeOutput(
  { kind, path }: PlannedOutput,
  writeContent: WriteContent,
  totalRows: number,
  { overwrite = false, onProgress }: ExportOptions,
): Promise<ExportedFile> {
  const file = await PartialFile.create(path, overwrite);
  try {
    let rows = 0;
    const report = (): void => onProgress?.({ path, rows, totalRows, writtenBytes: file.bytes });
    report();
    await writeContent({
      compression: compressionOfPath(path),
      write: async (bytes) => {
        await file.write(bytes);
        report();
      },
      onRows: (count) => {
        rows += count;
      },
      totalRows,
    });
    const sha256 = await file.publish();
    return { kind, path: file.path, bytes: file.bytes, sha256 };
  } catch (error) {
    await file.discard();
    throw error;
  }
}

import { existsSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { formatOfName } from '../../corpus/corpus-formats.ts';
import { jsonl } from '../../corpus/read-jsonl.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { requireFreeBytes } from '../../src/base/system/free-bytes.ts';
import type { LexicalField } from '../../src/engine/lexical/lexical-settings.ts';
import { DTYPE_BYTES, type VectorDtype } from '../../src/engine/vectors/vector-segments.ts';
import type { IndexDirectory } from '../../src/search/opening/index-directory.ts';
import { ciffPostings } from './write-ciff.ts';
import { compressionOfPath } from './write-lines.ts';

export const EXPORT_KINDS = ['faiss', 'npy', 'parquet', 'ciff', 'corpus', 'ids', 'row-numbers'] as const;
export type ExportKind = (typeof EXPORT_KINDS)[number];

export type ExportFiles = Readonly<Partial<Record<ExportKind, string>>>;

/** What all files of an export have in common. */
export interface ExportShape {
  readonly rows: number;
  readonly dtype: VectorDtype;
  readonly field: LexicalField | undefined;
}

export interface PlannedOutput {
  readonly kind: ExportKind;
  readonly path: string;
  readonly bytes: number;
}

/** Compressed text has about this share of its size. */
const COMPRESSION_RATIO = 0.3;
/** Share of a passage file that is text; the rest is SQLite's indexes and pages. */
const TEXT_SHARE = 0.7;
/** Estimated bytes of a line with an id or a row number. */
const ID_LINE_BYTES = 9;
/** Estimated bytes of a posting, and of a document's record, in a CIFF file. */
const CIFF_POSTING_BYTES = 8;
const CIFF_DOCUMENT_BYTES = 20;

/** The files to write, with estimated sizes. @throws TrawlError USAGE, OUTPUT_EXISTS. */
export function plannedOutputs(
  directory: IndexDirectory,
  { files, float16, overwrite }: { files: ExportFiles; float16?: boolean; overwrite?: boolean },
  { rows, dtype, field }: ExportShape,
): PlannedOutput[] {
  const values = rows * directory.manifest.dimension;
  const vectorBytes = values * DTYPE_BYTES[dtype];
  const ciffBytes =
    field === undefined ? 0 : ciffPostings(directory, field) * CIFF_POSTING_BYTES + rows * CIFF_DOCUMENT_BYTES;
  const textBytes = directory.passages.reduce((sum, { path }) => sum + statSync(path).size, 0);
  const outputs = EXPORT_KINDS.flatMap((kind): PlannedOutput[] => {
    const path = files[kind];
    if (path === undefined) return [];
    const ratio = compressionOfPath(path) === 'none' ? 1 : COMPRESSION_RATIO;
    const bytes: Readonly<Record<ExportKind, number>> = {
      faiss: vectorBytes,
      npy: vectorBytes,
      parquet: values * 4 + textBytes * COMPRESSION_RATIO,
      ciff: ciffBytes * ratio,
      corpus: textBytes * TEXT_SHARE * ratio,
      ids: rows * ID_LINE_BYTES * ratio,
      'row-numbers': rows * ID_LINE_BYTES * ratio,
    };
    return [{ kind, path: resolve(path), bytes: bytes[kind] }];
  });
  if (outputs.length === 0) {
    throw new TrawlError(
      'USAGE',
      `No output file given. Name at least one of ${EXPORT_KINDS.map((kind) => `--${kind} FILE`).join(', ')}.`,
    );
  }
  if (float16 === true && files.faiss === undefined && files.npy === undefined) {
    throw new TrawlError('USAGE', '--float16 only applies to --faiss and --npy; neither is given.');
  }
  const seen = new Set<string>();
  for (const { kind, path } of outputs) {
    if (seen.has(path)) throw new TrawlError('USAGE', `${path} is the path of two outputs. Give each its own path.`);
    seen.add(path);
    checkOutsideIndex(directory, path);
    if (existsSync(path) && overwrite !== true) {
      throw new TrawlError(
        'OUTPUT_EXISTS',
        `${path} already exists. Choose another path, or replace it with --overwrite.`,
      );
    }
    if (kind === 'ciff' && !/\.ciff(\.gz)?$/i.test(path)) {
      throw new TrawlError('USAGE', `--ciff writes ${basename(path)}, but its name must end in .ciff or .ciff.gz.`);
    }
    if (kind === 'corpus' && formatOfName(path)?.format !== jsonl) {
      throw new TrawlError(
        'USAGE',
        `--corpus writes JSON Lines: ${basename(path)} must end in .jsonl, .jsonl.gz or .jsonl.zst.`,
      );
    }
  }
  return outputs;
}

/** Throws if the output would overwrite a file of the index or be written into its folder. */
function checkOutsideIndex(directory: IndexDirectory, path: string): void {
  const parent = dirname(path);
  const real = existsSync(parent) ? join(realpathSync(parent), basename(path)) : path;
  const segments = directory.source?.shards.flatMap((shard) => shard.segments) ?? [];
  const files = segments.map((segment) => realpathSync(segment.path));
  if (!real.startsWith(`${realpathSync(directory.folder)}${sep}`) && !files.includes(real)) return;
  throw new TrawlError('USAGE', `${path} is a file of the index or inside its folder. Choose another path.`);
}

/** Checks the free space of every file system that gets output. @throws TrawlError DISK_FULL. */
export async function checkFreeSpace(outputs: readonly PlannedOutput[]): Promise<void> {
  const byDevice = new Map<number, { path: string; bytes: number }>();
  for (const { path, bytes } of outputs) {
    const parent = dirname(path);
    const device = existsSync(parent) ? statSync(parent).dev : -1;
    const before = byDevice.get(device);
    byDevice.set(device, { path: parent, bytes: bytes + (before?.bytes ?? 0) });
  }
  for (const { path, bytes } of byDevice.values()) await requireFreeBytes({ path, bytes, what: 'the exported files' });
}

import { existsSync, readdirSync, type Stats, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { bug, TrawlError } from '../../src/base/errors.ts';
import { fileState } from '../../src/base/system/file-checksum.ts';
import type { VectorDtype } from '../../src/engine/vectors/vector-segments.ts';
import { faiss } from './faiss-header.ts';
import { invalid, readPart } from './file-run.ts';
import { memmap } from './memmap-rows.ts';
import { npy } from './npy-header.ts';
import { pickle } from './pickled-arrays.ts';
import type { VectorFile, VectorFileFormat, VectorFileSet, VectorPart } from './vector-file-set.ts';

const FORMATS: readonly VectorFileFormat[] = [faiss, npy, memmap, pickle];

/** The values of --vectors-format. */
export const VECTOR_FILE_FORMATS: readonly string[] = FORMATS.map(({ name }) => name);

export interface OpenVectorFilesOptions {
  /** Dimension of the model; used for files without a header. */
  readonly dimension: number;
  /** Type of the values in files without a header. Default float32. */
  readonly dtype?: VectorDtype;
  /** Format of the files, one of VECTOR_FILE_FORMATS. Default: detected from their first bytes. */
  readonly format?: string;
}

type OpenedPart = VectorPart & { readonly format: string };

/**
 * Opens vector files, in the order of their rows. Reads only headers. Detects the format from the first bytes; a file of
 * unknown format is treated as raw values without a header (`memmap`).
 *
 * @param paths files, folders and patterns, as for `listVectorFiles`.
 * @throws TrawlError VECTORS_NOT_FOUND, VECTORS_INVALID or VECTORS_UNSUPPORTED, and the errors of `readPickledArrays`.
 */
export function openVectorFiles(paths: readonly string[], options: OpenVectorFilesOptions): VectorFileSet {
  const files = listVectorFiles(paths);
  const parts: OpenedPart[] = [];
  for (let at = 0; at < files.length; at = parts.at(-1)!.next) parts.push(readFrom(files, at, options));
  const [first, ...others] = parts as [OpenedPart, ...OpenedPart[]];
  for (const other of others) checkCompatible(files[first.next]!, first, other);
  const rows = parts.reduce((sum, part) => sum + part.rows, 0);
  if (rows === 0) throw invalid(files[0]!.path, 'it has no rows');
  const ids = parts.every((part) => part.ids !== undefined) ? parts.flatMap((part) => part.ids!) : undefined;
  return {
    rows,
    dimension: first.dimension,
    dtype: first.dtype,
    segments: parts.flatMap(({ segments }) => segments),
    metric: first.metric,
    ids,
    files,
    formats: [...new Set(parts.map(({ format }) => format))],
  };
}

function readFrom(
  files: readonly VectorFile[],
  at: number,
  { format: name, dimension, dtype = 'float32' }: OpenVectorFilesOptions,
): OpenedPart {
  const format = name === undefined ? recognisedFormat(files[at]!) : FORMATS.find((each) => each.name === name);
  if (format === undefined) throw bug(`no vector format is named ${name}`);
  return { format: format.name, ...format.open(files, at, { dimension, dtype }) };
}

function recognisedFormat(file: VectorFile): VectorFileFormat {
  const head = readPart(file, 8);
  return FORMATS.find((format) => format.recognises(head, file.path)) ?? memmap;
}

function checkCompatible(file: VectorFile, first: VectorPart, other: VectorPart): void {
  const differences = [
    first.dimension === other.dimension ? '' : `dimension ${first.dimension}, then ${other.dimension}`,
    first.dtype === other.dtype ? '' : `${first.dtype}, then ${other.dtype}`,
    first.metric === other.metric ? '' : `metric ${first.metric ?? 'none'}, then ${other.metric ?? 'none'}`,
  ].filter((difference) => difference !== '');
  if (differences.length > 0)
    throw invalid(file.path, `it does not match the files before it: ${differences.join('; ')}`);
}

export const BY_NUMBER = new Intl.Collator('en', { numeric: true });

const PIECE = /^part[_-]/;

/**
 * Lists vector files in the order of their rows. A folder stands for its pieces (`part_aa`, `part_ab`, …) or, if it has none,
 * for its files with a known suffix; a name with `*` or `?` for the files that match. Those are sorted by name, numbers by
 * value (`emb_2` before `emb_10`). Explicitly named files keep their order.
 *
 * @throws TrawlError VECTORS_NOT_FOUND.
 */
function listVectorFiles(paths: readonly string[]): VectorFile[] {
  const files = paths.flatMap(vectorPaths).map(fileAt);
  if (files.length === 0) throw notFound('no file was named');
  const twice = files.find(({ path }, i) => files.findIndex((other) => other.path === path) !== i);
  if (twice !== undefined) throw notFound(`${twice.path} is named twice`);
  return files;
}

/** The files that a path, a folder or a pattern stands for. @throws TrawlError VECTORS_NOT_FOUND. */
export function vectorPaths(path: string): string[] {
  const full = resolve(path);
  if (existsSync(full)) return statSync(full).isDirectory() ? filesOfFolder(full) : [full];
  const pattern = basename(full);
  if (!/[*?]/.test(pattern)) throw notFound(`${full} does not exist`);
  const folder = dirname(full);
  const expression = new RegExp(
    `^${[...pattern].map((c) => (c === '*' ? '.*' : c === '?' ? '.' : c.replace(/[\\^$+.()|[\]{}]/, '\\$&'))).join('')}$`,
  );
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => expression.test(name)) : [];
  if (names.length === 0) throw notFound(`no file matches ${full}`);
  return inOrder(folder, names);
}

function filesOfFolder(folder: string): string[] {
  const endings = FORMATS.flatMap((format) => format.endings);
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name);
  const pieces = names.filter((name) => PIECE.test(name));
  const found = pieces.length > 0 ? pieces : names.filter((name) => endings.some((ending) => name.endsWith(ending)));
  if (found.length === 0) throw notFound(`${folder} has no vector files (part_*, ${endings.join(', ')})`);
  return inOrder(folder, found);
}

function inOrder(folder: string, names: readonly string[]): string[] {
  return names.toSorted((a, b) => BY_NUMBER.compare(a, b) || (a < b ? -1 : 1)).map((name) => join(folder, name));
}

function fileAt(path: string): VectorFile {
  let stats: Stats;
  try {
    stats = statSync(path);
  } catch (cause) {
    throw notFound(`cannot read ${path}: ${(cause as Error).message}`);
  }
  if (!stats.isFile()) {
    throw notFound(`${path} is not a regular file; vectors are read in place, so a pipe cannot be used`);
  }
  return { path, bytes: stats.size, state: fileState(path)! };
}

function notFound(reason: string): TrawlError {
  return new TrawlError('VECTORS_NOT_FOUND', `Vector files: ${reason}. Name the files in the order of their rows.`);
}

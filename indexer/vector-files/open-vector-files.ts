import { isUtf8 } from 'node:buffer';
import { existsSync, readdirSync, type Stats, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { bug, TrawlError } from '../../src/base/errors.ts';
import { foreignFile, HEAD_BYTES } from '../../src/base/files/foreign-file.ts';
import { fileState } from '../../src/base/system/file-checksum.ts';
import type { VectorDtype } from '../../src/engine/vectors/vector-segments.ts';
import { readSegments } from '../vectors/read-segments.ts';
import { faiss } from './faiss-header.ts';
import { invalid, readPart, unsupported } from './file-run.ts';
import { fvecs } from './fvecs-rows.ts';
import { jsonl, parquet } from './json-rows.ts';
import { memmap } from './memmap-rows.ts';
import { npy } from './npy-header.ts';
import { npz } from './npz-archive.ts';
import { pickle } from './pickled-arrays.ts';
import { safetensors } from './safetensors-rows.ts';
import type { VectorFile, VectorFileFormat, VectorFileSet, VectorPart, VectorRow } from './vector-file-set.ts';
import { WorkingRows } from './working-rows.ts';

const FORMATS: readonly VectorFileFormat[] = [faiss, npy, memmap, pickle, npz, safetensors, fvecs, jsonl, parquet];
/** Formats of corpora, too: a folder's files of them have vectors only if it has no others. */
const ROW_FORMATS: readonly VectorFileFormat[] = [jsonl, parquet];

/** The values of --vectors-format. */
export const VECTOR_FILE_FORMATS: readonly string[] = FORMATS.map(({ name }) => name);

/** More parts of a file, such as the rows of DPR's pickles, are copied. */
const MOST_SEGMENTS = 64;

export interface OpenVectorFilesOptions {
  /** Dimension of the model; used for files without a header. */
  readonly dimension: number;
  /** Type of the values in files without a header. Default float32. */
  readonly dtype?: VectorDtype;
  /** Format of the files, one of VECTOR_FILE_FORMATS. Default: detected from their first bytes. */
  readonly format?: string;
  /** The file to which rows are copied that cannot be used in place. It must not exist; remove it after the last use of the vectors. */
  readonly workingFile?: string;
  readonly signal?: AbortSignal;
}

type OpenedPart = VectorPart & { readonly format: string };

/**
 * Opens vector files, in the order of their rows. Reads only headers, but for files whose rows cannot be used in place. Detects the
 * format from the first bytes; a file of unknown format is treated as raw values without a header (`memmap`).
 *
 * @param paths files, folders and patterns, as for `listVectorFiles`.
 * @throws TrawlError VECTORS_NOT_FOUND, VECTORS_INVALID or VECTORS_UNSUPPORTED, CANCELLED, and the errors of `readPickledArrays`.
 */
export async function openVectorFiles(
  paths: readonly string[],
  options: OpenVectorFilesOptions,
): Promise<VectorFileSet> {
  const files = listVectorFiles(paths);
  const working = new WorkingRows(options.workingFile);
  const parts: OpenedPart[] = [];
  try {
    for (let at = 0; at < files.length; at = parts.at(-1)!.next)
      parts.push(await readFrom(files, at, options, working));
  } finally {
    working.close();
  }
  const [first, ...others] = parts as [OpenedPart, ...OpenedPart[]];
  for (const [i, other] of others.entries()) checkCompatible(files[parts[i]!.next]!, first, other);
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
    isCopied: working.isUsed,
  };
}

async function readFrom(
  files: readonly VectorFile[],
  at: number,
  { format: name, dimension, dtype = 'float32', signal }: OpenVectorFilesOptions,
  working: WorkingRows,
): Promise<OpenedPart> {
  const file = files[at]!;
  const format = name === undefined ? recognisedFormat(file) : FORMATS.find((each) => each.name === name);
  if (format === undefined) throw bug(`no vector format is named ${name}`);
  const found = format.open(files, at, { dimension, dtype });
  if ('read' in found) return { format: format.name, ...(await working.copy(file.path, found, signal)) };
  if (found.segments.length <= MOST_SEGMENTS) return { format: format.name, ...found };
  const copied = await working.copy(file.path, { read: () => rowsOf(found), next: found.next }, signal);
  return { format: format.name, ...copied, metric: found.metric };
}

async function* rowsOf({ segments, dimension, ids }: VectorPart): AsyncGenerator<VectorRow> {
  for await (const { first, count, values } of readSegments(segments, dimension, { files: 'build' })) {
    for (let i = 0; i < count; i++) {
      yield { vector: values.subarray(i * dimension, (i + 1) * dimension), id: ids?.[first + i] };
    }
  }
}

function recognisedFormat(file: VectorFile): VectorFileFormat {
  const head = readPart(file, HEAD_BYTES);
  const found = FORMATS.find((format) => format.recognises(head, file.path));
  if (found !== undefined) return found;
  const foreign = file.path.endsWith('.memmap') ? undefined : (foreignFile(head) ?? textFile(head));
  if (foreign === undefined) return memmap;
  const { what, remedy } = foreign;
  throw unsupported(
    file.path,
    `it is ${what}; expected vectors: ${FORMATS.map(({ name }) => name).join(', ')}`,
    `${remedy} Raw values that happen to begin so: add --vectors-format memmap.`,
  );
}

/** Raw values are never text: a text of some length has neither control characters nor bytes that are not UTF-8. */
function textFile(head: Uint8Array): ReturnType<typeof foreignFile> {
  const isText =
    head.length >= SHORTEST_TEXT &&
    !head.some((byte) => byte < 9) &&
    isUtf8(head.subarray(0, head.lastIndexOf(10) + 1 || undefined));
  if (!isText) return undefined;
  return {
    what: 'a text',
    remedy: "Write its rows as .npy: numpy.save('vectors.npy', numpy.loadtxt(path, dtype='<f4')).",
  };
}

const SHORTEST_TEXT = 16;

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
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name);
  const named = (formats: readonly VectorFileFormat[]) =>
    names.filter((name) => formats.some(({ endings }) => endings.some((ending) => name.endsWith(ending))));
  const pieces = names.filter((name) => PIECE.test(name));
  const others = FORMATS.filter((format) => !ROW_FORMATS.includes(format));
  const found = [pieces, named(others), named(ROW_FORMATS)].find(({ length }) => length > 0);
  if (found === undefined) {
    throw notFound(`${folder} has no vector files (part_*, ${FORMATS.flatMap(({ endings }) => endings).join(', ')})`);
  }
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

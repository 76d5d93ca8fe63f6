import type { VectorDtype, VectorSegment } from '../../src/engine/vectors/vector-segments.ts';
import { isFaiss, readFaissHeader } from './faiss-header.ts';
import { invalid, readPart, rowsBehindHeader } from './file-run.ts';
import { listVectorFiles } from './list-vector-files.ts';
import { memmapRows } from './memmap-rows.ts';
import { isNpy, readNpyHeader } from './npy-header.ts';
import { readPickledArrays } from './pickled-arrays.ts';
import type { VectorFile, VectorFileFormat, VectorFileSet } from './vector-file-set.ts';

export interface OpenVectorFilesOptions {
  /** Dimension of the model; used for files without a header. */
  readonly dimension: number;
  /** Type of the values in files without a header. Default float32. */
  readonly dtype?: VectorDtype;
  /** Format of the files. Default: detected from their first bytes. */
  readonly format?: VectorFileFormat;
}

/** Rows of one file, or of a file that was split into pieces. */
interface Part {
  readonly format: VectorFileFormat;
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: VectorDtype;
  readonly segments: readonly VectorSegment[];
  readonly metric?: 'inner-product' | 'l2';
  readonly ids?: readonly string[] | null;
  /** Index of the next file. */
  readonly next: number;
}

/**
 * Opens vector files, in the order of their rows. Reads only headers. Detects the format from the first bytes; a file of
 * unknown format is treated as raw values without a header (`memmap`).
 *
 * @param paths files, folders and patterns (`listVectorFiles`).
 * @throws TrawlError VECTORS_NOT_FOUND, VECTORS_INVALID or VECTORS_UNSUPPORTED, and the errors of `readPickledArrays`.
 */
export function openVectorFiles(paths: readonly string[], options: OpenVectorFilesOptions): VectorFileSet {
  const files = listVectorFiles(paths);
  const parts: Part[] = [];
  for (let at = 0; at < files.length; at = parts.at(-1)!.next) parts.push(readFrom(files, at, options));
  const [first, ...others] = parts as [Part, ...Part[]];
  for (const other of others) checkCompatible(files[first.next]!, first, other);
  const rows = parts.reduce((sum, part) => sum + part.rows, 0);
  if (rows === 0) throw invalid(files[0]!.path, 'it has no rows');
  const ids = parts.every((part) => part.ids != null) ? parts.flatMap((part) => part.ids!) : undefined;
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

function readFrom(files: readonly VectorFile[], at: number, options: OpenVectorFilesOptions): Part {
  const format = options.format ?? formatOf(files[at]!);
  switch (format) {
    case 'faiss': {
      const { metric, ...facts } = readFaissHeader(files[at]!);
      return { format, metric, ...facts, ...rowsBehindHeader(files, at, facts) };
    }
    case 'npy': {
      const facts = readNpyHeader(files[at]!);
      return { format, ...facts, ...rowsBehindHeader(files, at, facts) };
    }
    case 'pickle':
      return { format, ...pickledRows(files[at]!), next: at + 1 };
    case 'memmap': {
      const { dimension, dtype = 'float32' } = options;
      const raw = files.slice(at);
      return { format, dimension, dtype, ...memmapRows(raw, { dimension, dtype }), next: files.length };
    }
  }
}

function formatOf(file: VectorFile): VectorFileFormat {
  const head = readPart(file, 8);
  if (isNpy(head)) return 'npy';
  if (isFaiss(head)) return 'faiss';
  // Raw values can begin with the same two bytes as a pickle, so the suffix counts, too.
  if (!file.path.endsWith('.memmap') && isPickle(head)) return 'pickle';
  return 'memmap';
}

/** A pickle begins with 0x80 and the protocol number. */
function isPickle(head: Uint8Array): boolean {
  return head[0] === 0x80 && head[1]! >= 2 && head[1]! <= 5;
}

/** The arrays in pickles from RAG-R1 and R1-Searcher, or, with ids, from tevatron. */
function pickledRows({ path }: VectorFile): Omit<Part, 'format' | 'next'> {
  const { arrays, ids } = readPickledArrays(path);
  const { dimension, dtype } = arrays[0]!;
  return {
    rows: arrays.reduce((sum, array) => sum + array.rows, 0),
    dimension,
    dtype,
    segments: arrays.filter(({ bytes }) => bytes > 0).map(({ offset, bytes }) => ({ path, offset, bytes, dtype })),
    ids,
  };
}

function checkCompatible(file: VectorFile, first: Part, other: Part): void {
  const differences = [
    first.dimension === other.dimension ? '' : `dimension ${first.dimension}, then ${other.dimension}`,
    first.dtype === other.dtype ? '' : `${first.dtype}, then ${other.dtype}`,
    first.metric === other.metric ? '' : `metric ${first.metric ?? 'none'}, then ${other.metric ?? 'none'}`,
  ].filter((difference) => difference !== '');
  if (differences.length > 0)
    throw invalid(file.path, `it does not match the files before it: ${differences.join('; ')}`);
}

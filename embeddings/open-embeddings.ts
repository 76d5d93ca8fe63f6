import type { VectorDtype, VectorSegment } from '../src/vector-index/vector-segments.ts';
import type { EmbeddingFile, EmbeddingFormat, EmbeddingSet } from './embedding-set.ts';
import { isFaiss, readFaissHeader } from './faiss-header.ts';
import { invalid, readPart, rowsBehindHeader } from './file-run.ts';
import { listEmbeddingFiles } from './list-embedding-files.ts';
import { memmapRows } from './memmap-rows.ts';
import { isNpy, readNpyHeader } from './npy-header.ts';
import { readPickledArrays } from './pickled-arrays.ts';

export interface OpenEmbeddingsOptions {
  /** Dimension of files without a header: the model's. */
  readonly dimension: number;
  /** Type of the values of files without a header. Default float32. */
  readonly dtype?: VectorDtype | undefined;
  /** Kind of the files, where their first bytes should not decide. */
  readonly format?: EmbeddingFormat | undefined;
}

/** Rows from one file, or from one file and the pieces that follow it. */
interface Part {
  readonly format: EmbeddingFormat;
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: VectorDtype;
  readonly segments: readonly VectorSegment[];
  readonly metric?: 'inner-product' | 'l2';
  readonly ids?: readonly string[] | null;
  /** Index of the file after it. */
  readonly next: number;
}

/**
 * Looks at files of vectors, given in the order of their rows, and says where the rows lie; only headers are read. The
 * kind is told by the first bytes; what has no known ones is raw float32.
 *
 * @param paths files, folders and patterns (`listEmbeddingFiles`).
 * @throws TrawlError VECTORS_NOT_FOUND, VECTORS_INVALID or VECTORS_UNSUPPORTED, naming the file; those of
 * `readPickledArrays`.
 */
export function openEmbeddings(paths: readonly string[], options: OpenEmbeddingsOptions): EmbeddingSet {
  const files = listEmbeddingFiles(paths);
  const parts: Part[] = [];
  for (let at = 0; at < files.length; at = parts.at(-1)!.next) parts.push(readFrom(files, at, options));
  const [first, ...others] = parts as [Part, ...Part[]];
  for (const other of others) checkAlike(files[first.next]!, first, other);
  const rows = parts.reduce((sum, part) => sum + part.rows, 0);
  if (rows === 0) throw invalid(files[0]!.path, 'holds no row');
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

function readFrom(files: readonly EmbeddingFile[], at: number, options: OpenEmbeddingsOptions): Part {
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

function formatOf(file: EmbeddingFile): EmbeddingFormat {
  const head = readPart(file, 8);
  if (isNpy(head)) return 'npy';
  if (isFaiss(head)) return 'faiss';
  // Values may begin with any two bytes, so the name is asked too.
  if (!file.path.endsWith('.memmap') && isPickle(head)) return 'pickle';
  return 'memmap';
}

/** A pickle of protocol 2 to 5 begins with its number. */
function isPickle(head: Uint8Array): boolean {
  return head[0] === 0x80 && head[1]! >= 2 && head[1]! <= 5;
}

/** The arrays of RAG-R1's and R1-Searcher's pickles, and tevatron's with ids. */
function pickledRows({ path }: EmbeddingFile): Omit<Part, 'format' | 'next'> {
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

function checkAlike(file: EmbeddingFile, first: Part, other: Part): void {
  const differences = [
    first.dimension === other.dimension ? '' : `dimension ${first.dimension}, then ${other.dimension}`,
    first.dtype === other.dtype ? '' : `${first.dtype}, then ${other.dtype}`,
    first.metric === other.metric ? '' : `metric ${first.metric ?? 'none'}, then ${other.metric ?? 'none'}`,
  ].filter((difference) => difference !== '');
  if (differences.length > 0)
    throw invalid(file.path, `does not go on with the files before: ${differences.join('; ')}`);
}

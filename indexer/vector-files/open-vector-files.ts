import { bug } from '../../src/base/errors.ts';
import type { VectorDtype } from '../../src/engine/vectors/vector-segments.ts';
import { faiss } from './faiss-header.ts';
import { invalid, readPart } from './file-run.ts';
import { listVectorFiles } from './list-vector-files.ts';
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

interface OpenedPart extends VectorPart {
  readonly format: string;
}

/**
 * Opens vector files, in the order of their rows. Reads only headers. Detects the format from the first bytes; a file of
 * unknown format is treated as raw values without a header (`memmap`).
 *
 * @param paths files, folders and patterns (`listVectorFiles`).
 * @throws TrawlError VECTORS_NOT_FOUND, VECTORS_INVALID or VECTORS_UNSUPPORTED, and the errors of `readPickledArrays`.
 */
export function openVectorFiles(paths: readonly string[], options: OpenVectorFilesOptions): VectorFileSet {
  const files = listVectorFiles(
    paths,
    FORMATS.flatMap(({ endings }) => endings),
  );
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
  const format = name === undefined ? formatOf(files[at]!) : FORMATS.find((each) => each.name === name);
  if (format === undefined) throw bug(`no vector format is named ${name}`);
  return { format: format.name, ...format.open(files, at, { dimension, dtype }) };
}

function formatOf(file: VectorFile): VectorFileFormat {
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

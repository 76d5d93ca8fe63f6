import { TrawlError } from '../../src/base/errors.ts';
import { DTYPE_BYTES, type VectorDtype } from '../../src/engine/vectors/vector-segments.ts';
import { unpickle } from './pickle-machine.ts';
import { describe, isKind, type NumpyArray, type PickleValue } from './pickled-numpy.ts';
import type { VectorFileFormat } from './vector-file-set.ts';

/** Arrays in pickles of RAG-R1 and R1-Searcher, or, with ids, of tevatron and DPR. */
export const pickle: VectorFileFormat = {
  name: 'pickle',
  endings: ['.pkl', '.pickle'],
  /** A pickle begins with 0x80 and the protocol number. Raw values can begin with the same two bytes, so the ending counts, too. */
  recognises: (head, path) => !path.endsWith('.memmap') && head[0] === 0x80 && head[1]! >= 2 && head[1]! <= 5,
  open(files, at) {
    const { path } = files[at]!;
    const { arrays, ids } = readPickledArrays(path);
    const { dimension, dtype } = arrays[0]!;
    return {
      rows: arrays.reduce((sum, array) => sum + array.rows, 0),
      dimension,
      dtype,
      segments: arrays.filter(({ bytes }) => bytes > 0).map(({ offset, bytes }) => ({ path, offset, bytes, dtype })),
      ids,
      next: at + 1,
    };
  },
};

/** An array in a pickle. Its values are row-major and little-endian. */
interface PickledArray {
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: VectorDtype;
  /** Byte offset of the values in the file; not aligned. */
  readonly offset: number;
  /** rows × dimension × 4 or 2. */
  readonly bytes: number;
}

export interface PickledArrays {
  /** All have the same dimension and dtype. */
  readonly arrays: readonly PickledArray[];
  /** Ids by row, integers in decimal, if the pickle has ids. */
  readonly ids?: readonly string[];
}

const DTYPES: Readonly<Record<string, VectorDtype>> = { f4: 'float32', f2: 'float16' };
const OTHER_DTYPES: Readonly<Record<string, string>> = { f8: 'float64', i8: 'int64', i4: 'int32', O8: 'objects' };

/**
 * Finds the values of the arrays in a pickle, so that they can be used in place. Supports an array (RAG-R1 and R1-Searcher:
 * `split_0.pickle`), a list or tuple of arrays or rows, and `(array, ids)` (tevatron). A one-dimensional array is a row.
 * Neither executes code from the pickle nor reads the values. As Python's `pickle.load`, reads the first object of the file alone.
 *
 * @throws TrawlError PICKLE_UNSAFE if the pickle names a function or class that numpy's arrays do not need; PICKLE_INVALID if
 * it is damaged, or if the values cannot be used in place (other types, big-endian, column-major, protocol 2);
 * DIMENSION_MISMATCH if the arrays differ in dimension or dtype.
 * @internal Exported for tests.
 */
export function readPickledArrays(path: string): PickledArrays {
  const { arrays, ids } = arraysAndIds(path, unpickle(path));
  const located = arrays.map((array) => locate(path, array, ids !== undefined));
  checkCompatible(path, located);
  const names = ids?.map((id) => idText(path, id));
  const rows = located.reduce((sum, array) => sum + array.rows, 0);
  if (names !== undefined && names.length !== rows) {
    throw invalid(path, `it has ${names.length} ids for ${rows} rows`, REWRITE);
  }
  return { arrays: located, ids: names };
}

interface ArraysAndIds {
  readonly arrays: NumpyArray[];
  readonly ids?: readonly PickleValue[];
}

function arraysAndIds(path: string, value: PickleValue): ArraysAndIds {
  if (isKind(value, 'array')) return { arrays: [value] };
  if (isKind(value, 'dictionary')) {
    const [keys, values] = [0, 1].map((odd) => value.items.filter((_, i) => i % 2 === odd)) as [
      PickleValue[],
      PickleValue[],
    ];
    const found = rowsWithIds(keys.map((key, i) => [key, values[i]!])) ?? matrixAndIds(values);
    if (found !== undefined) return found;
    throw otherContent(
      path,
      `a dictionary of ${keys.length} with other values`,
      'A dictionary may be {id: vector} or {name: array, name: ids}.',
    );
  }
  if (!isKind(value, 'tuple', 'list')) throw otherContent(path, describe(value));
  const { items } = value;
  const arrays = items.filter((item) => isKind(item, 'array'));
  if (arrays.length === 2 && /^[USOiu]/.test(arrays[1]!.content?.dtype.code ?? '')) {
    const remedy = `${ASSUMING_TRUST} (array, list(ids)) with pickle.`;
    throw otherContent(path, `a ${value.kind} of 2 arrays, of which the second has ids`, remedy);
  }
  if (arrays.length > 0 && arrays.length === items.length) return { arrays };
  const found =
    matrixAndIds(items) ?? rowsWithIds(items.map((item) => (isKind(item, 'tuple', 'list') ? item.items : [])));
  if (found !== undefined) return found;
  const other = items.find((item) => !isKind(item, 'array'));
  throw otherContent(path, `${describe(value)} with ${items.length === 0 ? 'no array' : describe(other)} in it`);
}

/** An array and its ids, in any order: tevatron's (array, ids), and dictionaries of both. */
function matrixAndIds(values: readonly PickleValue[]): ArraysAndIds | undefined {
  const array = values.find((value) => isKind(value, 'array'));
  const ids = values.find((value) => isKind(value, 'tuple', 'list'));
  const isAll = values.length === (ids === undefined ? 1 : 2);
  return isAll && array !== undefined ? { arrays: [array], ids: ids?.items } : undefined;
}

/** The id and the vector of each row: DPR's [(id, vector), …] and {id: vector}. */
function rowsWithIds(pairs: readonly (readonly PickleValue[])[]): ArraysAndIds | undefined {
  const arrays = pairs.map(([, vector]) => vector).filter((vector) => isKind(vector, 'array'));
  const areRows = arrays.every(({ content }) => content?.shape.length === 1 || content?.shape[0] === 1);
  const isWhole = pairs.length > 0 && arrays.length === pairs.length && pairs.every(({ length }) => length === 2);
  return isWhole && areRows ? { arrays, ids: pairs.map(([id]) => id!) } : undefined;
}

function locate(path: string, { content }: NumpyArray, hasIds: boolean): PickledArray {
  if (content === undefined) throw invalid(path, 'an array has no values', REWRITE);
  const { shape, isFortran, data } = content;
  const { code, order } = content.dtype;
  const dtype = Object.hasOwn(DTYPES, code) ? DTYPES[code] : undefined;
  if (dtype === undefined) {
    const name = OTHER_DTYPES[code] ?? JSON.stringify(code);
    throw invalid(path, `its values are ${name}; expected float32 or float16`, asFloat32(path, hasIds));
  }
  if (order !== '<') {
    throw invalid(path, `its values are not little-endian (byte order ${order ?? 'missing'})`, asFloat32(path, hasIds));
  }
  if (shape.length < 1 || shape.length > 2) {
    throw invalid(path, `it has an array with ${shape.length} dimensions; expected 2`, 'Save the vectors as a matrix.');
  }
  const [rows, dimension] = shape.length === 1 ? [1, shape[0]!] : [shape[0]!, shape[1]!];
  if (dimension === 0) throw invalid(path, 'its rows have dimension 0', REWRITE);
  // With a single row or column, both orders are the same.
  if (isFortran && rows > 1 && dimension > 1) {
    throw invalid(path, 'its array is column-major (Fortran order)', asFloat32(path, hasIds));
  }
  if (data.kind === 'text') {
    const found = 'its values are encoded as text (pickle protocol 2) and cannot be used in place';
    throw invalid(path, found, asFloat32(path, hasIds));
  }
  // BigInt, because the product of a damaged shape can exceed 2^53.
  if (BigInt(rows) * BigInt(dimension) * BigInt(DTYPE_BYTES[dtype]) !== BigInt(data.range.length)) {
    throw invalid(path, `an array has ${data.range.length} bytes for ${rows} rows of ${dimension} ${dtype}`, REWRITE);
  }
  return { rows, dimension, dtype, offset: data.range.offset, bytes: data.range.length };
}

function checkCompatible(path: string, arrays: readonly PickledArray[]): void {
  const first = arrays[0]!;
  const other = arrays.findIndex(({ dimension, dtype }) => dimension !== first.dimension || dtype !== first.dtype);
  if (other < 0) return;
  const { dimension, dtype } = arrays[other]!;
  throw new TrawlError(
    'DIMENSION_MISMATCH',
    `${path}: array 0 has rows of ${first.dimension} ${first.dtype}, array ${other} has rows of ${dimension} ${dtype}. All ` +
      'arrays must come from the same model.',
  );
}

function idText(path: string, id: PickleValue): string {
  if (typeof id === 'string') return id;
  if (typeof id === 'bigint' || (typeof id === 'number' && Number.isSafeInteger(id))) return String(id);
  throw invalid(path, `an id is ${describe(id)}; ids must be texts or integers`, 'Convert the ids.');
}

function otherContent(path: string, found: string, remedy?: string): TrawlError {
  return invalid(
    path,
    `it contains ${found}; expected an array, a list of arrays, (array, ids), or [(id, vector), …]`,
    remedy ?? `${ASSUMING_TRUST} the matrix with numpy.save('vectors.npy', matrix).`,
  );
}

const ASSUMING_TRUST = 'If you trust the file, load it in Python, and save';
const REWRITE = 'Write the file again.';

/** The remedy for a file with the right values in another format. */
function asFloat32(path: string, hasIds: boolean): string {
  const load = `pickle.load(open('${path}', 'rb'))`;
  if (hasIds)
    return `${ASSUMING_TRUST} the arrays as '<f4' again: numpy.ascontiguousarray(array, '<f4'), with pickle protocol 4.`;
  return `If you trust the file: python -c "import pickle, numpy; numpy.save('vectors.npy', numpy.vstack(${load}).astype('<f4'))".`;
}

function invalid(path: string, reason: string, remedy: string): TrawlError {
  return new TrawlError('PICKLE_INVALID', `${path}: ${reason}. ${remedy}`);
}

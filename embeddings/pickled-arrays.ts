import { TrawlError } from '../src/errors.ts';
import { DTYPE_BYTES, type VectorDtype } from '../src/vector-index/vector-segments.ts';
import { unpickle } from './pickle-machine.ts';
import { describe, NumpyArray, PickleSequence, type PickleValue } from './pickle-values.ts';

/** One array of a pickle: where in the file its values lie, row-major, little-endian, at any alignment. */
export interface PickledArray {
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: VectorDtype;
  readonly offset: number;
  /** rows × dimension × 4 or 2. */
  readonly bytes: number;
}

export interface PickledArrays {
  /** In order; all of the same dimension and dtype. */
  readonly arrays: readonly PickledArray[];
  /** One for each row, integers in decimal; null where the pickle has none. */
  readonly ids: readonly string[] | null;
  /** Bytes behind the first object: a file that was appended to. Python's `pickle.load` does not read them either. */
  readonly trailingBytes: number;
}

const DTYPES: Readonly<Record<string, VectorDtype>> = { f4: 'float32', f2: 'float16' };
const OTHER_DTYPES: Readonly<Record<string, string>> = { f8: 'float64', i8: 'int64', i4: 'int32', O8: 'objects' };

/**
 * Looks where in a pickle the values of its arrays lie, so that they can be used in place. Three forms are known: an array
 * (RAG-R1 and R1-Searcher: `split_0.pickle`), a list or tuple of arrays or of rows, and `(array, ids)` (tevatron). An array
 * of one dimension is one row. Nothing of the pickle is executed, and its values are not read.
 *
 * @throws TrawlError PICKLE_UNSAFE where the pickle names anything that numpy's arrays do not need; PICKLE_INVALID where it
 * is damaged or holds something else: float64, big-endian or column-major arrays, and values that cannot be used in place
 * (protocol 2); DIMENSION_MISMATCH where the arrays differ in dimension or dtype.
 */
export function readPickledArrays(path: string): PickledArrays {
  const { value, trailingBytes } = unpickle(path);
  const { arrays, ids } = partsOf(path, value);
  const located = arrays.map((array) => locate(path, array));
  checkAlike(path, located);
  const names = ids === null ? null : ids.map((id) => idText(path, id));
  const rows = located.reduce((sum, array) => sum + array.rows, 0);
  if (names !== null && names.length !== rows) {
    throw invalid(path, `it has ${names.length} ids for ${rows} rows`, 'Write it again.');
  }
  return { arrays: located, ids: names, trailingBytes };
}

function partsOf(path: string, value: PickleValue): { arrays: NumpyArray[]; ids: readonly PickleValue[] | null } {
  if (value instanceof NumpyArray) return { arrays: [value], ids: null };
  if (!(value instanceof PickleSequence)) throw otherContent(path, describe(value));
  const [first, second] = value.items;
  if (first instanceof NumpyArray && second instanceof PickleSequence && value.items.length === 2) {
    return { arrays: [first], ids: second.items };
  }
  const arrays = value.items.filter((item) => item instanceof NumpyArray);
  if (arrays.length === 0 || arrays.length < value.items.length) {
    const other = value.items.find((item) => !(item instanceof NumpyArray));
    throw otherContent(
      path,
      `${describe(value)} with ${value.items.length === 0 ? 'no array' : describe(other)} in it`,
    );
  }
  return { arrays, ids: null };
}

function locate(path: string, { content }: NumpyArray): PickledArray {
  if (content === undefined) throw invalid(path, 'an array has no values', 'Write it again.');
  const { shape, isFortran, data } = content;
  const { code, order } = content.dtype;
  const dtype = Object.hasOwn(DTYPES, code) ? DTYPES[code] : undefined;
  if (dtype === undefined) {
    const name = OTHER_DTYPES[code] ?? JSON.stringify(code);
    throw invalid(path, `its values are ${name}; float32 or float16 are needed`, asFloat32(path));
  }
  if (order !== '<') throw invalid(path, `its values are not little-endian (${order ?? 'no order'})`, asFloat32(path));
  if (shape.length < 1 || shape.length > 2) {
    throw invalid(path, `it has an array of ${shape.length} dimensions; rows need 2`, 'Write a matrix.');
  }
  const [rows, dimension] = shape.length === 1 ? [1, shape[0]!] : [shape[0]!, shape[1]!];
  if (dimension === 0) throw invalid(path, 'its rows are of dimension 0', 'Write it again.');
  // A matrix of one row or column has its values in the same order either way.
  if (isFortran && rows > 1 && dimension > 1) {
    throw invalid(path, 'its array is column-major (Fortran order)', asFloat32(path));
  }
  if (data.kind === 'text') {
    throw invalid(
      path,
      'its values are spelt as text (pickle protocol 2) and cannot be used in place',
      asFloat32(path),
    );
  }
  // In 64 bits and more: a product that wraps would fit a small file.
  if (BigInt(rows) * BigInt(dimension) * BigInt(DTYPE_BYTES[dtype]) !== BigInt(data.range.length)) {
    throw invalid(path, `${data.range.length} bytes for ${rows} rows of ${dimension} ${dtype}`, 'Write it again.');
  }
  return { rows, dimension, dtype, offset: data.range.offset, bytes: data.range.length };
}

function checkAlike(path: string, arrays: readonly PickledArray[]): void {
  const first = arrays[0]!;
  const other = arrays.findIndex(({ dimension, dtype }) => dimension !== first.dimension || dtype !== first.dtype);
  if (other < 0) return;
  const { dimension, dtype } = arrays[other]!;
  throw new TrawlError(
    'DIMENSION_MISMATCH',
    `${path}: array 0 has rows of ${first.dimension} ${first.dtype}, array ${other} of ${dimension} ${dtype}. All rows of an ` +
      'index are alike: write the arrays of one model.',
  );
}

function idText(path: string, id: PickleValue): string {
  if (typeof id === 'string') return id;
  if (typeof id === 'bigint' || (typeof id === 'number' && Number.isSafeInteger(id))) return String(id);
  throw invalid(path, `an id is ${describe(id)}; texts or integers are needed`, 'Write them so.');
}

function otherContent(path: string, found: string): TrawlError {
  return invalid(path, `it holds ${found}, not an array, a list of arrays or (array, ids)`, asFloat32(path));
}

/** The way out where the file holds the right numbers in another form. */
function asFloat32(path: string): string {
  const load = `pickle.load(open(${JSON.stringify(path)}, 'rb'))`;
  return `Where you trust the file: python -c "import pickle, numpy; numpy.save('vectors.npy', numpy.ascontiguousarray(${load.replaceAll('"', "'")}, '<f4'))"; for (array, ids) take its first part.`;
}

function invalid(path: string, reason: string, wayOut: string): TrawlError {
  return new TrawlError('PICKLE_INVALID', `${path}: ${reason}. ${wayOut}`);
}

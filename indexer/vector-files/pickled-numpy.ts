import { TrawlError } from '../../src/base/errors.ts';
import type { PickleBytes } from './pickle-bytes.ts';
import {
  describe,
  NumpyArray,
  type NumpyContent,
  NumpyDtype,
  PickleBlob,
  PickleGlobal,
  PickleSequence,
  type PickleValue,
} from './pickle-values.ts';

type Call = (args: readonly PickleValue[], bytes: PickleBytes) => PickleValue;

/**
 * The functions and classes in pickles of numpy arrays (`ndarray.__reduce__`, `ndarray.__reduce_ex__` for protocol 5,
 * `dtype.__reduce__`), with the module names of numpy 1 and numpy 2, and their implementations. null: a class that is only
 * an argument.
 */
const ALLOWED: Readonly<Record<string, Call | null>> = {
  'numpy.ndarray': null,
  'numpy.dtype': makeDtype,
  'numpy.core.multiarray._reconstruct': makeArray,
  'numpy._core.multiarray._reconstruct': makeArray,
  'numpy.core.numeric._frombuffer': arrayFromBuffer,
  'numpy._core.numeric._frombuffer': arrayFromBuffer,
  // Byte strings in protocol 2.
  '_codecs.encode': bytesFromText,
};

/** @throws TrawlError PICKLE_UNSAFE for a name that numpy's arrays do not need. */
export function allowedGlobal(name: string, bytes: PickleBytes): PickleGlobal {
  if (Object.hasOwn(ALLOWED, name)) return new PickleGlobal(name);
  throw unsafe(bytes, `it names ${JSON.stringify(name)}`);
}

export function unsafe({ path, position }: PickleBytes, what: string): TrawlError {
  return new TrawlError(
    'PICKLE_UNSAFE',
    `${path} may be malicious: at byte ${position} ${what}, which numpy's arrays do not need. Loading a pickle in Python can ` +
      'run arbitrary code; trawl ran nothing. If you trust the file, load it in Python and save the array with numpy.save.',
  );
}

/** REDUCE: calls an allowed function. */
export function reduce(callee: PickleValue, args: PickleValue, bytes: PickleBytes): PickleValue {
  const call = callee instanceof PickleGlobal ? ALLOWED[callee.name] : undefined;
  if (call === undefined || call === null) throw unsafe(bytes, `it calls ${describe(callee)}`);
  if (!(args instanceof PickleSequence) || args.type !== 'tuple') {
    throw bytes.invalid('the arguments of a call are not a tuple');
  }
  return call(args.items, bytes);
}

/** BUILD: sets the state of a dtype or an array (`__setstate__`). */
export function build(target: PickleValue, state: PickleValue, bytes: PickleBytes): void {
  if (!(state instanceof PickleSequence) || state.type !== 'tuple') throw bytes.invalid('a state is not a tuple');
  if (target instanceof NumpyDtype) {
    const [version, order, subarray, names, fields] = state.items;
    if (typeof version !== 'number' || typeof order !== 'string')
      throw bytes.invalid('the state of a dtype is invalid');
    if (subarray !== null || names !== null || fields !== null) throw bytes.invalid('a dtype has fields');
    target.order = order;
  } else if (target instanceof NumpyArray) {
    const [version, shape, dtype, isFortran, data] = state.items;
    if (version !== 1 || state.items.length !== 5) throw bytes.invalid('the state of an array is invalid');
    target.content = contentOf({ shape, dtype, isFortran, data }, bytes);
  } else throw unsafe(bytes, `it sets the state of ${describe(target)}`);
}

function makeDtype([code]: readonly PickleValue[], bytes: PickleBytes): PickleValue {
  if (typeof code !== 'string') throw bytes.invalid('a dtype has no name');
  return new NumpyDtype(code);
}

function makeArray([type]: readonly PickleValue[], bytes: PickleBytes): PickleValue {
  if (!(type instanceof PickleGlobal) || type.name !== 'numpy.ndarray')
    throw bytes.invalid('an array is not a numpy.ndarray');
  return new NumpyArray();
}

function arrayFromBuffer([data, dtype, shape, order]: readonly PickleValue[], bytes: PickleBytes): PickleValue {
  if (order !== 'C' && order !== 'F') throw bytes.invalid('an array has no order');
  const array = new NumpyArray();
  array.content = contentOf({ shape, dtype, isFortran: order === 'F', data }, bytes);
  return array;
}

function bytesFromText([text, codec]: readonly PickleValue[], bytes: PickleBytes): PickleValue {
  if (codec !== 'latin1') throw bytes.invalid('a byte string has an unknown encoding');
  if (text instanceof PickleBlob) return new PickleBlob('text', text.range);
  if (typeof text !== 'string') throw bytes.invalid('an encoded byte string is not a text');
  return new PickleBlob('text', { offset: bytes.position, length: text.length });
}

type Parts = Readonly<Record<'shape' | 'dtype' | 'isFortran' | 'data', PickleValue | undefined>>;

function contentOf({ shape, dtype, isFortran, data }: Parts, bytes: PickleBytes): NumpyContent {
  if (!(shape instanceof PickleSequence) || !shape.items.every(isCount)) throw bytes.invalid('an array has no shape');
  if (!(dtype instanceof NumpyDtype)) throw bytes.invalid('an array has no dtype');
  if (typeof isFortran !== 'boolean') throw bytes.invalid('an array has no order');
  if (!(data instanceof PickleBlob)) throw bytes.invalid(`the values of an array are ${describe(data)}`);
  return { shape: shape.items, dtype, isFortran, data };
}

function isCount(value: PickleValue): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

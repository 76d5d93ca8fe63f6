import { TrawlError } from '../src/errors.ts';
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
 * What numpy's arrays are pickled with (`ndarray.__reduce__`, `ndarray.__reduce_ex__` for protocol 5, `dtype.__reduce__`),
 * before and since numpy 2 renamed its core. The functions are done here, by their documented effect; null stands for a
 * class that is only named.
 */
const ALLOWED: Readonly<Record<string, Call | null>> = {
  'numpy.ndarray': null,
  'numpy.dtype': makeDtype,
  'numpy.core.multiarray._reconstruct': makeArray,
  'numpy._core.multiarray._reconstruct': makeArray,
  'numpy.core.numeric._frombuffer': arrayFromBuffer,
  'numpy._core.numeric._frombuffer': arrayFromBuffer,
  // Bytes in protocol 2.
  '_codecs.encode': bytesFromText,
};

/** @throws TrawlError PICKLE_UNSAFE for any name that numpy's plain arrays do not need. */
export function allowedGlobal(name: string, bytes: PickleBytes): PickleGlobal {
  if (Object.hasOwn(ALLOWED, name)) return new PickleGlobal(name);
  throw unsafe(bytes, `it names ${JSON.stringify(name)}`);
}

export function unsafe({ path, position }: PickleBytes, what: string): TrawlError {
  return new TrawlError(
    'PICKLE_UNSAFE',
    `${path}: byte ${position}: ${what}, which numpy's arrays do not need; a pickle may run any program when Python loads ` +
      'it. Nothing was run. Where you trust the file, load it in Python and save the array with numpy.save.',
  );
}

/** What REDUCE does: calls an allowed function. */
export function reduce(callee: PickleValue, args: PickleValue, bytes: PickleBytes): PickleValue {
  const call = callee instanceof PickleGlobal ? ALLOWED[callee.name] : undefined;
  if (call === undefined || call === null) throw unsafe(bytes, `it calls ${describe(callee)}`);
  if (!(args instanceof PickleSequence) || args.kind !== 'tuple') throw bytes.invalid('a call without arguments');
  return call(args.items, bytes);
}

/** What BUILD does: sets the state of a dtype or an array (`__setstate__`). */
export function build(target: PickleValue, state: PickleValue, bytes: PickleBytes): void {
  if (!(state instanceof PickleSequence) || state.kind !== 'tuple') throw bytes.invalid('a state that is no tuple');
  if (target instanceof NumpyDtype) {
    const [version, order, subarray, names, fields] = state.items;
    if (typeof version !== 'number' || typeof order !== 'string')
      throw bytes.invalid("a dtype's state of another form");
    if (subarray !== null || names !== null || fields !== null) throw bytes.invalid('a dtype with fields');
    target.order = order;
  } else if (target instanceof NumpyArray) {
    const [version, shape, dtype, isFortran, data] = state.items;
    if (version !== 1 || state.items.length !== 5) throw bytes.invalid("an array's state of another form");
    target.content = contentOf({ shape, dtype, isFortran, data }, bytes);
  } else throw unsafe(bytes, `it sets the state of ${describe(target)}`);
}

function makeDtype([code]: readonly PickleValue[], bytes: PickleBytes): PickleValue {
  if (typeof code !== 'string') throw bytes.invalid('a dtype without a name');
  return new NumpyDtype(code);
}

function makeArray([kind]: readonly PickleValue[], bytes: PickleBytes): PickleValue {
  if (!(kind instanceof PickleGlobal) || kind.name !== 'numpy.ndarray')
    throw bytes.invalid('an array of another class');
  return new NumpyArray();
}

function arrayFromBuffer([data, dtype, shape, order]: readonly PickleValue[], bytes: PickleBytes): PickleValue {
  if (order !== 'C' && order !== 'F') throw bytes.invalid('an array without an order');
  const array = new NumpyArray();
  array.content = contentOf({ shape, dtype, isFortran: order === 'F', data }, bytes);
  return array;
}

function bytesFromText([text, codec]: readonly PickleValue[], bytes: PickleBytes): PickleValue {
  if (codec !== 'latin1') throw bytes.invalid('bytes in an unknown encoding');
  if (text instanceof PickleBlob) return new PickleBlob('text', text.range);
  if (typeof text !== 'string') throw bytes.invalid('bytes that are no text');
  return new PickleBlob('text', { offset: bytes.position, length: text.length });
}

type Parts = Readonly<Record<'shape' | 'dtype' | 'isFortran' | 'data', PickleValue | undefined>>;

function contentOf({ shape, dtype, isFortran, data }: Parts, bytes: PickleBytes): NumpyContent {
  if (!(shape instanceof PickleSequence) || !shape.items.every(isCount))
    throw bytes.invalid('an array without a shape');
  if (!(dtype instanceof NumpyDtype)) throw bytes.invalid('an array without a dtype');
  if (typeof isFortran !== 'boolean') throw bytes.invalid('an array without an order');
  if (!(data instanceof PickleBlob)) throw bytes.invalid(`an array whose values are ${describe(data)}`);
  return { shape: shape.items, dtype, isFortran, data };
}

function isCount(value: PickleValue): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

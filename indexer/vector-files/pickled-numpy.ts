import { TrawlError } from '../../src/base/errors.ts';
import type { ByteRange, PickleBytes } from './pickle-bytes.ts';

/** A value in a pickle. The pickle cannot create objects of other classes. */
export type PickleValue = null | boolean | number | bigint | string | PickleObject;

type PickleObject =
  | { readonly kind: 'tuple'; readonly items: PickleValue[] }
  /** Items may be appended after the list was pushed. */
  | { readonly kind: 'list'; readonly items: PickleValue[] }
  /** Keys and values in turns. */
  | { readonly kind: 'dictionary'; readonly items: PickleValue[] }
  | PickleBlob
  /** The name of an allowed function or class. */
  | { readonly kind: 'global'; readonly name: string }
  | NumpyDtype
  | NumpyArray;

/**
 * Bytes in the file that are not read. `text`: a text too long to be read, or a byte string encoded as text (protocol 2),
 * which cannot be used in place.
 */
type PickleBlob =
  | { readonly kind: 'bytes'; readonly range: ByteRange }
  | { readonly kind: 'text'; readonly range: ByteRange };

interface NumpyDtype {
  readonly kind: 'dtype';
  /** Argument of numpy's constructor, such as `f4`. */
  readonly code: string;
  /** `<` little-endian, `>` big-endian; undefined until BUILD sets it. */
  order: string | undefined;
}

export interface NumpyArray {
  readonly kind: 'array';
  /** Undefined until BUILD sets it. */
  content: NumpyContent | undefined;
}

interface NumpyContent {
  readonly shape: readonly number[];
  readonly dtype: NumpyDtype;
  readonly isFortran: boolean;
  readonly data: PickleBlob;
}

export function isKind<Kind extends PickleObject['kind']>(
  value: PickleValue | undefined,
  ...kinds: readonly Kind[]
): value is Extract<PickleObject, { readonly kind: Kind }> {
  return typeof value === 'object' && value !== null && (kinds as readonly string[]).includes(value.kind);
}

/** Describes a value in error messages, without its content. */
export function describe(value: PickleValue | undefined): string {
  if (value === undefined || value === null) return 'nothing';
  if (isKind(value, 'tuple', 'list')) return `a ${value.kind} of ${value.items.length}`;
  if (isKind(value, 'global')) return value.name;
  if (isKind(value, 'bytes', 'text')) return value.kind;
  if (isKind(value, 'array')) return 'an array';
  if (typeof value === 'object') return `a ${value.kind}`;
  if (typeof value === 'string') return 'a text';
  return typeof value === 'boolean' ? 'a boolean' : 'a number';
}

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
export function allowedGlobal(name: string, bytes: PickleBytes): PickleValue {
  if (Object.hasOwn(ALLOWED, name)) return { kind: 'global', name };
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
  const call = isKind(callee, 'global') ? ALLOWED[callee.name] : undefined;
  if (call == null) throw unsafe(bytes, `it calls ${describe(callee)}`);
  if (!isKind(args, 'tuple')) throw bytes.invalid('the arguments of a call are not a tuple');
  return call(args.items, bytes);
}

/** BUILD: sets the state of a dtype or an array (`__setstate__`). */
export function build(target: PickleValue, state: PickleValue, bytes: PickleBytes): void {
  if (!isKind(state, 'tuple')) throw bytes.invalid('a state is not a tuple');
  if (isKind(target, 'dtype')) {
    const [version, order, subarray, names, fields] = state.items;
    if (typeof version !== 'number' || typeof order !== 'string') {
      throw bytes.invalid('the state of a dtype is invalid');
    }
    if (subarray !== null || names !== null || fields !== null) throw bytes.invalid('a dtype has fields');
    target.order = order;
  } else if (isKind(target, 'array')) {
    const [version, shape, dtype, isFortran, data] = state.items;
    if (version !== 1 || state.items.length !== 5) throw bytes.invalid('the state of an array is invalid');
    target.content = arrayContent({ shape, dtype, isFortran, data }, bytes);
  } else throw unsafe(bytes, `it sets the state of ${describe(target)}`);
}

function makeDtype([code]: readonly PickleValue[], bytes: PickleBytes): PickleValue {
  if (typeof code !== 'string') throw bytes.invalid('a dtype has no name');
  return { kind: 'dtype', code, order: undefined };
}

function makeArray([type]: readonly PickleValue[], bytes: PickleBytes): PickleValue {
  if (!isKind(type, 'global') || type.name !== 'numpy.ndarray') throw bytes.invalid('an array is not a numpy.ndarray');
  return { kind: 'array', content: undefined };
}

function arrayFromBuffer([data, dtype, shape, order]: readonly PickleValue[], bytes: PickleBytes): PickleValue {
  if (order !== 'C' && order !== 'F') throw bytes.invalid('an array has no order');
  return { kind: 'array', content: arrayContent({ shape, dtype, isFortran: order === 'F', data }, bytes) };
}

function bytesFromText([text, codec]: readonly PickleValue[], bytes: PickleBytes): PickleValue {
  if (codec !== 'latin1') throw bytes.invalid('a byte string has an unknown encoding');
  if (isKind(text, 'bytes', 'text')) return { kind: 'text', range: text.range };
  if (typeof text !== 'string') throw bytes.invalid('an encoded byte string is not a text');
  return { kind: 'text', range: { offset: bytes.position, length: text.length } };
}

type ArrayFields = Readonly<Record<'shape' | 'dtype' | 'isFortran' | 'data', PickleValue | undefined>>;

function arrayContent({ shape, dtype, isFortran, data }: ArrayFields, bytes: PickleBytes): NumpyContent {
  if (!isKind(shape, 'tuple', 'list') || !shape.items.every(isCount)) throw bytes.invalid('an array has no shape');
  if (!isKind(dtype, 'dtype')) throw bytes.invalid('an array has no dtype');
  if (typeof isFortran !== 'boolean') throw bytes.invalid('an array has no order');
  if (!isKind(data, 'bytes', 'text')) throw bytes.invalid(`the values of an array are ${describe(data)}`);
  return { shape: shape.items, dtype, isFortran, data };
}

function isCount(value: PickleValue): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

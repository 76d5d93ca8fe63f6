import type { ByteRange } from './pickle-bytes.ts';

/** A value in a pickle. The pickle cannot create objects of other classes. */
export type PickleValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | PickleSequence
  | PickleDict
  | PickleBlob
  | PickleGlobal
  | NumpyDtype
  | NumpyArray;

/** A tuple or a list. The items of a list may be appended after it was pushed. */
export class PickleSequence {
  readonly type: 'tuple' | 'list';
  readonly items: PickleValue[];

  constructor(type: 'tuple' | 'list', items: PickleValue[]) {
    this.type = type;
    this.items = items;
  }
}

/** A dictionary. Its content is not kept. */
export class PickleDict {
  entries = 0;
}

/**
 * Bytes in the file that are not read. `text`: a text too long to be read, or a byte string encoded as text (protocol 2),
 * which cannot be used in place.
 */
export class PickleBlob {
  readonly type: 'bytes' | 'text';
  readonly range: ByteRange;

  constructor(type: 'bytes' | 'text', range: ByteRange) {
    this.type = type;
    this.range = range;
  }
}

/** The name of an allowed function or class. */
export class PickleGlobal {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

export class NumpyDtype {
  /** Argument of numpy's constructor, such as `f4`. */
  readonly code: string;
  /** `<` little-endian, `>` big-endian; undefined until BUILD sets it. */
  order: string | undefined;

  constructor(code: string) {
    this.code = code;
  }
}

export class NumpyArray {
  /** Undefined until BUILD sets it. */
  content: NumpyContent | undefined;
}

export interface NumpyContent {
  readonly shape: readonly number[];
  readonly dtype: NumpyDtype;
  readonly isFortran: boolean;
  readonly data: PickleBlob;
}

/** Describes a value in error messages, without its content. */
export function describe(value: PickleValue | undefined): string {
  if (value === undefined || value === null) return 'nothing';
  if (typeof value === 'object') {
    if (value instanceof PickleSequence) return `a ${value.type} of ${value.items.length}`;
    if (value instanceof PickleDict) return 'a dictionary';
    if (value instanceof PickleBlob) return value.type;
    if (value instanceof PickleGlobal) return value.name;
    if (value instanceof NumpyDtype) return 'a dtype';
    return 'an array';
  }
  if (typeof value === 'string') return 'a text';
  return typeof value === 'boolean' ? 'a boolean' : 'a number';
}

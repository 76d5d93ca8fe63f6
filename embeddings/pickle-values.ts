import type { ByteRange } from './pickle-bytes.ts';

/** What a pickle is made of here. Nothing in it is of a class that the pickle chose. */
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

/** A tuple or list. Lists may be appended to after they were referred to. */
export class PickleSequence {
  readonly kind: 'tuple' | 'list';
  readonly items: PickleValue[];

  constructor(kind: 'tuple' | 'list', items: PickleValue[]) {
    this.kind = kind;
    this.items = items;
  }
}

/** A dictionary; its content is of no use here. */
export class PickleDict {
  entries = 0;
}

/**
 * Bytes that stay in the file. `text` stands for a text too long to be read, or bytes that are spelt as text (protocol 2),
 * which cannot be used where they lie.
 */
export class PickleBlob {
  readonly kind: 'bytes' | 'text';
  readonly range: ByteRange;

  constructor(kind: 'bytes' | 'text', range: ByteRange) {
    this.kind = kind;
    this.range = range;
  }
}

/** The name of a function or class, one of those that are allowed. */
export class PickleGlobal {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

export class NumpyDtype {
  /** As numpy's constructor takes it: `f4`. */
  readonly code: string;
  /** `<` little-endian, `>` big-endian; undefined until its state was set. */
  order: string | undefined;

  constructor(code: string) {
    this.code = code;
  }
}

export class NumpyArray {
  /** Undefined until its state was set. */
  content: NumpyContent | undefined;
}

export interface NumpyContent {
  readonly shape: readonly number[];
  readonly dtype: NumpyDtype;
  readonly isFortran: boolean;
  readonly data: PickleBlob;
}

/** A value in a few words, for messages; never its content. */
export function describe(value: PickleValue | undefined): string {
  if (value === undefined || value === null) return 'nothing';
  if (typeof value === 'object') {
    if (value instanceof PickleSequence) return `a ${value.kind} of ${value.items.length}`;
    if (value instanceof PickleDict) return 'a dictionary';
    if (value instanceof PickleBlob) return value.kind;
    if (value instanceof PickleGlobal) return value.name;
    if (value instanceof NumpyDtype) return 'a dtype';
    return 'an array';
  }
  if (typeof value === 'string') return 'a text';
  return typeof value === 'boolean' ? 'a boolean' : 'a number';
}

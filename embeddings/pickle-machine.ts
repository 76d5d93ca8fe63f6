import { type ByteRange, PickleBytes } from './pickle-bytes.ts';
import { PickleBlob, PickleDict, PickleSequence, type PickleValue } from './pickle-values.ts';
import { allowedGlobal, build, reduce, unsafe } from './pickled-numpy.ts';

/** Opcodes by CPython's Lib/pickle.py, which documents them. */
const OP = {
  MARK: 0x28,
  EMPTY_TUPLE: 0x29,
  STOP: 0x2e,
  POP: 0x30,
  POP_MARK: 0x31,
  DUP: 0x32,
  BINBYTES: 0x42,
  SHORT_BINBYTES: 0x43,
  BINFLOAT: 0x47,
  BININT: 0x4a,
  BININT1: 0x4b,
  BININT2: 0x4d,
  NONE: 0x4e,
  REDUCE: 0x52,
  BINUNICODE: 0x58,
  EMPTY_LIST: 0x5d,
  APPEND: 0x61,
  BUILD: 0x62,
  GLOBAL: 0x63,
  DICT: 0x64,
  APPENDS: 0x65,
  BINGET: 0x68,
  INST: 0x69,
  LONG_BINGET: 0x6a,
  LIST: 0x6c,
  OBJ: 0x6f,
  PERSID: 0x50,
  BINPERSID: 0x51,
  BINPUT: 0x71,
  LONG_BINPUT: 0x72,
  SETITEM: 0x73,
  TUPLE: 0x74,
  SETITEMS: 0x75,
  EMPTY_DICT: 0x7d,
  PROTO: 0x80,
  NEWOBJ: 0x81,
  EXT1: 0x82,
  EXT2: 0x83,
  EXT4: 0x84,
  TUPLE1: 0x85,
  TUPLE2: 0x86,
  TUPLE3: 0x87,
  NEWTRUE: 0x88,
  NEWFALSE: 0x89,
  LONG1: 0x8a,
  SHORT_BINUNICODE: 0x8c,
  BINUNICODE8: 0x8d,
  BINBYTES8: 0x8e,
  NEWOBJ_EX: 0x92,
  STACK_GLOBAL: 0x93,
  MEMOIZE: 0x94,
  FRAME: 0x95,
  BYTEARRAY8: 0x96,
  NEXT_BUFFER: 0x97,
} as const;

const NAMES = new Map<number, string>(Object.entries(OP).map(([name, code]) => [code, name]));
/** They make objects of classes that the pickle names, or ask the program that loads it for one. */
const MAKES_OBJECTS = new Set<number>([
  ...[OP.NEWOBJ, OP.NEWOBJ_EX, OP.OBJ, OP.INST, OP.PERSID, OP.BINPERSID, OP.EXT1, OP.EXT2, OP.EXT4],
]);

/** Texts longer than this are no ids and stay in the file. */
const MAX_TEXT_BYTES = 64 * 1024;
/** Values that are held at once: the ids of 33 million rows. */
const MAX_VALUES = 2 ** 25;
/** Lists, tuples, dictionaries, arrays and dtypes that are made: an array takes about six. */
const MAX_CONTAINERS = 2 ** 23;

export interface UnpickledFile {
  readonly value: PickleValue;
  /** Bytes behind the first object, which is all that Python's `pickle.load` reads. */
  readonly trailingBytes: number;
}

/**
 * Reads the first object of a pickle by interpreting its opcodes. The only functions there are for it are those that make
 * numpy's dtypes and arrays, and they are done here; bytes stay in the file. Time and memory are bounded by the file's
 * opcodes, not by its bytes.
 *
 * @throws TrawlError PICKLE_UNSAFE where it names anything else, PICKLE_INVALID where it is damaged or too large.
 */
export function unpickle(path: string): UnpickledFile {
  const bytes = new PickleBytes(path);
  try {
    return { value: new PickleMachine(bytes).run(), trailingBytes: bytes.size - bytes.position };
  } finally {
    bytes.close();
  }
}

class PickleMachine {
  readonly #bytes: PickleBytes;
  #stack: PickleValue[] = [];
  /** The stacks below the open marks. */
  readonly #below: PickleValue[][] = [];
  readonly #memo: PickleValue[] = [];
  #values = 0;
  #containers = 0;

  constructor(bytes: PickleBytes) {
    this.#bytes = bytes;
  }

  run(): PickleValue {
    const protocol = this.#bytes.byte() === OP.PROTO ? this.#bytes.byte() : 0;
    if (protocol < 2 || protocol > 5) throw this.#bytes.invalid('no pickle of protocol 2 to 5');
    for (;;) {
      const code = this.#bytes.byte();
      if (code === OP.STOP) {
        if (this.#below.length > 0 || this.#stack.length !== 1) throw this.#bytes.invalid('an end before the end');
        return this.#pop();
      }
      this.#step(code);
    }
  }

  #step(code: number): void {
    const value = this.#made(code);
    if (value === undefined) this.#act(code);
    else {
      this.#count(1);
      this.#stack.push(value);
    }
  }

  /** The value that an opcode puts on the stack; undefined for those that do something else. */
  #made(code: number): PickleValue | undefined {
    const bytes = this.#bytes;
    switch (code) {
      case OP.NONE:
        return null;
      case OP.NEWTRUE:
        return true;
      case OP.NEWFALSE:
        return false;
      case OP.BININT:
        return bytes.int32();
      case OP.BININT1:
        return bytes.byte();
      case OP.BININT2:
        return bytes.uint16();
      case OP.LONG1:
        return numberOf(bytes.integer(bytes.byte()));
      case OP.BINFLOAT:
        bytes.skip(8);
        return Number.NaN;
      case OP.SHORT_BINUNICODE:
        return bytes.text(bytes.byte());
      case OP.BINUNICODE:
        return this.#text(bytes.uint32());
      case OP.BINUNICODE8:
        return this.#text(bytes.uint64());
      case OP.SHORT_BINBYTES:
        return this.#blob(bytes.skip(bytes.byte()));
      case OP.BINBYTES:
        return this.#blob(bytes.skip(bytes.uint32()));
      case OP.BINBYTES8:
      case OP.BYTEARRAY8:
        return this.#blob(bytes.skip(bytes.uint64()));
      case OP.EMPTY_TUPLE:
        return this.#sequence('tuple', []);
      case OP.TUPLE1:
        return this.#sequence('tuple', this.#popMany(1));
      case OP.TUPLE2:
        return this.#sequence('tuple', this.#popMany(2));
      case OP.TUPLE3:
        return this.#sequence('tuple', this.#popMany(3));
      case OP.TUPLE:
        return this.#sequence('tuple', this.#popMark());
      case OP.LIST:
        return this.#sequence('list', this.#popMark());
      case OP.EMPTY_LIST:
        return this.#sequence('list', []);
      case OP.EMPTY_DICT:
        return this.#container(new PickleDict());
      case OP.DICT:
        this.#popMark();
        return this.#container(new PickleDict());
      case OP.DUP:
        return this.#top();
      case OP.BINGET:
        return this.#noted(bytes.byte());
      case OP.LONG_BINGET:
        return this.#noted(bytes.uint32());
      case OP.GLOBAL:
        return this.#container(allowedGlobal(`${bytes.line()}.${bytes.line()}`, bytes));
      case OP.STACK_GLOBAL:
        return this.#stackGlobal();
      case OP.REDUCE: {
        const [callee, args] = this.#popMany(2);
        return this.#container(reduce(callee!, args!, bytes));
      }
      default:
        return undefined;
    }
  }

  #act(code: number): void {
    const bytes = this.#bytes;
    switch (code) {
      case OP.FRAME:
        bytes.uint64();
        break;
      case OP.MARK:
        this.#below.push(this.#container(this.#stack));
        this.#stack = [];
        break;
      case OP.POP:
        // On an empty stack above a mark Python takes the mark away; no writer does so.
        this.#pop();
        break;
      case OP.POP_MARK:
        this.#popMark();
        break;
      case OP.APPEND:
        this.#append(this.#popMany(1));
        break;
      case OP.APPENDS:
        this.#append(this.#popMark());
        break;
      case OP.SETITEM:
        this.#setItems(this.#popMany(2));
        break;
      case OP.SETITEMS:
        this.#setItems(this.#popMark());
        break;
      case OP.BINPUT:
        this.#note(bytes.byte());
        break;
      case OP.LONG_BINPUT:
        this.#note(bytes.uint32());
        break;
      case OP.MEMOIZE:
        this.#note(this.#memo.length);
        break;
      case OP.BUILD: {
        const state = this.#pop();
        build(this.#top(), state, bytes);
        break;
      }
      case OP.NEXT_BUFFER:
        throw bytes.invalid('its values were written elsewhere (out-of-band buffers)');
      default:
        throw this.#refused(code);
    }
  }

  #refused(code: number): Error {
    const name = NAMES.get(code) ?? `0x${code.toString(16).padStart(2, '0')}`;
    if (!MAKES_OBJECTS.has(code)) return this.#bytes.invalid(`the opcode ${name} has no place in it`);
    const named = code === OP.INST ? ` of ${JSON.stringify(`${this.#bytes.line()}.${this.#bytes.line()}`)}` : '';
    return unsafe(this.#bytes, `it makes an object${named} (${name})`);
  }

  #count(values: number): void {
    this.#values += values;
    if (this.#values > MAX_VALUES) throw this.#bytes.invalid(`more than ${MAX_VALUES} values`);
  }

  #container<T>(made: T): T {
    if (++this.#containers > MAX_CONTAINERS) {
      throw this.#bytes.invalid(`more than ${MAX_CONTAINERS} lists, tuples and arrays`);
    }
    return made;
  }

  #sequence(kind: 'tuple' | 'list', items: PickleValue[]): PickleValue {
    return this.#container(new PickleSequence(kind, items));
  }

  #blob(range: ByteRange): PickleValue {
    return this.#container(new PickleBlob('bytes', range));
  }

  #text(length: number): PickleValue {
    if (length <= MAX_TEXT_BYTES) return this.#bytes.text(length);
    return this.#container(new PickleBlob('text', this.#bytes.skip(length)));
  }

  #top(): PickleValue {
    const top = this.#stack.at(-1);
    if (top === undefined) throw this.#bytes.invalid('a value is used that is not there');
    return top;
  }

  #pop(): PickleValue {
    const value = this.#stack.pop();
    if (value === undefined) throw this.#bytes.invalid('a value is used that is not there');
    return value;
  }

  #popMany(count: number): PickleValue[] {
    if (this.#stack.length < count) throw this.#bytes.invalid('values are used that are not there');
    return this.#stack.splice(this.#stack.length - count);
  }

  #popMark(): PickleValue[] {
    const below = this.#below.pop();
    if (below === undefined) throw this.#bytes.invalid('a mark is used that is not there');
    const items = this.#stack;
    this.#stack = below;
    return items;
  }

  #append(items: readonly PickleValue[]): void {
    const list = this.#top();
    if (!(list instanceof PickleSequence) || list.kind !== 'list') throw this.#bytes.invalid('an item for no list');
    for (const item of items) list.items.push(item);
  }

  #setItems(items: readonly PickleValue[]): void {
    const dictionary = this.#top();
    if (!(dictionary instanceof PickleDict) || items.length % 2 !== 0) {
      throw this.#bytes.invalid('an item for no dictionary');
    }
    dictionary.entries += items.length / 2;
  }

  /** Every writer counts from 0; numbers with gaps would be a way to take much memory. */
  #note(index: number): void {
    if (index > this.#memo.length) throw this.#bytes.invalid(`note ${index} before note ${this.#memo.length}`);
    this.#count(1);
    this.#memo[index] = this.#top();
  }

  #noted(index: number): PickleValue {
    const value = this.#memo[index];
    if (value === undefined) throw this.#bytes.invalid(`note ${index} is used before it was made`);
    return value;
  }

  #stackGlobal(): PickleValue {
    const [module, name] = this.#popMany(2);
    if (typeof module !== 'string' || typeof name !== 'string') throw this.#bytes.invalid('a name that is no text');
    // A dot in the name would reach into an allowed class.
    if (name.includes('.')) throw unsafe(this.#bytes, `it names ${JSON.stringify(`${module}.${name}`)}`);
    return this.#container(allowedGlobal(`${module}.${name}`, this.#bytes));
  }
}

function numberOf(value: bigint): number | bigint {
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

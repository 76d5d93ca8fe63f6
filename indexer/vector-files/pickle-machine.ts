import { type ByteRange, PickleBytes } from './pickle-bytes.ts';
import { PickleBlob, PickleDict, PickleSequence, type PickleValue } from './pickle-values.ts';
import { allowedGlobal, build, reduce, unsafe } from './pickled-numpy.ts';

/** Opcodes from CPython's Lib/pickle.py, which documents them. */
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
/** Opcodes that create objects of arbitrary classes, or request objects from the loading program. */
const MAKES_OBJECTS = new Set<number>([
  ...[OP.NEWOBJ, OP.NEWOBJ_EX, OP.OBJ, OP.INST, OP.PERSID, OP.BINPERSID, OP.EXT1, OP.EXT2, OP.EXT4],
]);

/** A longer text cannot be an id and is not read. */
const MAX_TEXT_BYTES = 64 * 1024;
/**
 * Largest number of values and memo entries: enough for 33 million integer ids, or for 16 million text ids, each of which has a memo
 * entry.
 */
const MAX_VALUES = 2 ** 25;
/** Largest number of lists, tuples, dictionaries, byte strings, dtypes and arrays. A numpy array needs about six of them. */
const MAX_CONTAINERS = 2 ** 23;

export interface UnpickledFile {
  readonly value: PickleValue;
  /** Bytes after the first object. Python's `pickle.load` does not read them either. */
  readonly trailingBytes: number;
}

/**
 * Reads the first object of a pickle by interpreting its opcodes. The pickle can only call the functions that create numpy's
 * dtypes and arrays, which are implemented in pickled-numpy.ts. A byte string becomes a byte range of the file (`PickleBlob`); its
 * bytes are not read. Time and memory depend on the number of opcodes, not on the size of the file.
 *
 * @throws TrawlError PICKLE_UNSAFE if the pickle names any other function or class, PICKLE_INVALID if it is damaged or has
 * too many values.
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
  /** The stack below each MARK that no opcode has removed yet, the innermost last. */
  readonly #below: PickleValue[][] = [];
  readonly #memo: PickleValue[] = [];
  #values = 0;
  #containers = 0;

  constructor(bytes: PickleBytes) {
    this.#bytes = bytes;
  }

  run(): PickleValue {
    const protocol = this.#bytes.byte() === OP.PROTO ? this.#bytes.byte() : 0;
    if (protocol < 2 || protocol > 5) throw this.#bytes.invalid('it is not a pickle of protocol 2 to 5');
    for (;;) {
      const code = this.#bytes.byte();
      if (code === OP.STOP) {
        if (this.#below.length > 0 || this.#stack.length !== 1)
          throw this.#bytes.invalid('STOP with an unfinished object');
        return this.#pop();
      }
      this.#step(code);
    }
  }

  #step(code: number): void {
    const value = this.#evaluate(code);
    if (value === undefined) this.#execute(code);
    else {
      this.#count(1);
      this.#stack.push(value);
    }
  }

  /** The value that an opcode pushes; undefined for opcodes that push nothing. */
  #evaluate(code: number): PickleValue | undefined {
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
        // Ids, shapes and offsets are never floats, so the number is not needed.
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
        return this.#recall(bytes.byte());
      case OP.LONG_BINGET:
        return this.#recall(bytes.uint32());
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

  /** Executes an opcode that pushes nothing. */
  #execute(code: number): void {
    const bytes = this.#bytes;
    switch (code) {
      case OP.FRAME:
        bytes.uint64();
        break;
      case OP.MARK:
        // Counted as a container, so that a file of MARKs cannot fill the memory.
        this.#below.push(this.#container(this.#stack));
        this.#stack = [];
        break;
      case OP.POP:
        // Python also lets POP remove a MARK, but no writer uses it.
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
        this.#memoize(bytes.byte());
        break;
      case OP.LONG_BINPUT:
        this.#memoize(bytes.uint32());
        break;
      case OP.MEMOIZE:
        this.#memoize(this.#memo.length);
        break;
      case OP.BUILD: {
        const state = this.#pop();
        build(this.#top(), state, bytes);
        break;
      }
      case OP.NEXT_BUFFER:
        throw bytes.invalid('the values are not in the file (out-of-band buffers)');
      default:
        throw this.#refused(code);
    }
  }

  #refused(code: number): Error {
    const name = NAMES.get(code) ?? `0x${code.toString(16).padStart(2, '0')}`;
    if (!MAKES_OBJECTS.has(code)) return this.#bytes.invalid(`unsupported opcode ${name}`);
    const named = code === OP.INST ? ` of ${JSON.stringify(`${this.#bytes.line()}.${this.#bytes.line()}`)}` : '';
    return unsafe(this.#bytes, `it creates an object${named} (${name})`);
  }

  #count(values: number): void {
    this.#values += values;
    if (this.#values > MAX_VALUES) throw this.#bytes.invalid(`more than ${MAX_VALUES} values`);
  }

  #container<T>(container: T): T {
    if (++this.#containers > MAX_CONTAINERS) {
      throw this.#bytes.invalid(`more than ${MAX_CONTAINERS} lists, tuples and arrays`);
    }
    return container;
  }

  #sequence(type: 'tuple' | 'list', items: PickleValue[]): PickleValue {
    return this.#container(new PickleSequence(type, items));
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
    if (top === undefined) throw this.#bytes.invalid('the stack is empty');
    return top;
  }

  #pop(): PickleValue {
    const value = this.#stack.pop();
    if (value === undefined) throw this.#bytes.invalid('the stack is empty');
    return value;
  }

  #popMany(count: number): PickleValue[] {
    if (this.#stack.length < count) throw this.#bytes.invalid('the stack has too few values');
    return this.#stack.splice(this.#stack.length - count);
  }

  #popMark(): PickleValue[] {
    const below = this.#below.pop();
    if (below === undefined) throw this.#bytes.invalid('the stack has no MARK');
    const items = this.#stack;
    this.#stack = below;
    return items;
  }

  #append(items: readonly PickleValue[]): void {
    const list = this.#top();
    if (!(list instanceof PickleSequence) || list.type !== 'list') {
      throw this.#bytes.invalid('an item is appended to something that is not a list');
    }
    for (const item of items) list.items.push(item);
  }

  #setItems(items: readonly PickleValue[]): void {
    const dictionary = this.#top();
    if (!(dictionary instanceof PickleDict) || items.length % 2 !== 0) {
      throw this.#bytes.invalid('an item is set on something that is not a dictionary');
    }
    dictionary.entries += items.length / 2;
  }

  /** Writers number memo entries from 0 without gaps. Gaps are refused because they would use memory. */
  #memoize(index: number): void {
    if (index > this.#memo.length) throw this.#bytes.invalid(`memo entry ${index} before entry ${this.#memo.length}`);
    this.#count(1);
    this.#memo[index] = this.#top();
  }

  #recall(index: number): PickleValue {
    const value = this.#memo[index];
    if (value === undefined) throw this.#bytes.invalid(`memo entry ${index} is used before it is set`);
    return value;
  }

  #stackGlobal(): PickleValue {
    const [module, name] = this.#popMany(2);
    if (typeof module !== 'string' || typeof name !== 'string')
      throw this.#bytes.invalid('a function name is not a text');
    // A dotted name would reach attributes of an allowed class.
    if (name.includes('.')) throw unsafe(this.#bytes, `it names ${JSON.stringify(`${module}.${name}`)}`);
    return this.#container(allowedGlobal(`${module}.${name}`, this.#bytes));
  }
}

function numberOf(value: bigint): number | bigint {
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

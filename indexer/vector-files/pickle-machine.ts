import { PickleBytes } from './pickle-bytes.ts';
import { allowedGlobal, build, isKind, type PickleValue, reduce, unsafe } from './pickled-numpy.ts';

type Opcodes<Result> = Readonly<
  Record<number, readonly [name: string, run: (machine: PickleMachine, bytes: PickleBytes) => Result]>
>;

// The opcodes of CPython's Lib/pickle.py, which documents them.
const PROTO = 0x80;
const STOP = 0x2e;

const PUSHES: Opcodes<PickleValue> = {
  78: ['NONE', () => null],
  136: ['NEWTRUE', () => true],
  137: ['NEWFALSE', () => false],
  74: ['BININT', (_, bytes) => bytes.int32()],
  75: ['BININT1', (_, bytes) => bytes.byte()],
  77: ['BININT2', (_, bytes) => bytes.uint16()],
  138: ['LONG1', (_, bytes) => numberIfSafe(bytes.integer(bytes.byte()))],
  71: ['BINFLOAT', (machine) => machine.float()],
  140: ['SHORT_BINUNICODE', (_, bytes) => bytes.text(bytes.byte())],
  88: ['BINUNICODE', (machine, bytes) => machine.text(bytes.uint32())],
  141: ['BINUNICODE8', (machine, bytes) => machine.text(bytes.uint64())],
  67: ['SHORT_BINBYTES', (machine, bytes) => machine.blob(bytes.byte())],
  66: ['BINBYTES', (machine, bytes) => machine.blob(bytes.uint32())],
  142: ['BINBYTES8', (machine, bytes) => machine.blob(bytes.uint64())],
  150: ['BYTEARRAY8', (machine, bytes) => machine.blob(bytes.uint64())],
  41: ['EMPTY_TUPLE', (machine) => machine.sequence('tuple', [])],
  133: ['TUPLE1', (machine) => machine.sequence('tuple', machine.popMany(1))],
  134: ['TUPLE2', (machine) => machine.sequence('tuple', machine.popMany(2))],
  135: ['TUPLE3', (machine) => machine.sequence('tuple', machine.popMany(3))],
  116: ['TUPLE', (machine) => machine.sequence('tuple', machine.popMark())],
  93: ['EMPTY_LIST', (machine) => machine.sequence('list', [])],
  108: ['LIST', (machine) => machine.sequence('list', machine.popMark())],
  125: ['EMPTY_DICT', (machine) => machine.dictionary([])],
  100: ['DICT', (machine) => machine.dictionary(machine.popMark())],
  50: ['DUP', (machine) => machine.top()],
  104: ['BINGET', (machine, bytes) => machine.recall(bytes.byte())],
  106: ['LONG_BINGET', (machine, bytes) => machine.recall(bytes.uint32())],
  99: ['GLOBAL', (machine, bytes) => machine.global(bytes.line(), bytes.line())],
  147: ['STACK_GLOBAL', (machine) => machine.stackGlobal()],
  82: ['REDUCE', (machine) => machine.reduce()],
};

/** Opcodes that push nothing. */
const ACTIONS: Opcodes<void> = {
  149: ['FRAME', (_, bytes) => bytes.uint64()],
  40: ['MARK', (machine) => machine.mark()],
  // Python also lets POP remove a MARK, but no writer uses it.
  48: ['POP', (machine) => machine.pop()],
  49: ['POP_MARK', (machine) => machine.popMark()],
  97: ['APPEND', (machine) => machine.append(machine.popMany(1))],
  101: ['APPENDS', (machine) => machine.append(machine.popMark())],
  115: ['SETITEM', (machine) => machine.setItems(machine.popMany(2))],
  117: ['SETITEMS', (machine) => machine.setItems(machine.popMark())],
  113: ['BINPUT', (machine, bytes) => machine.memoize(bytes.byte())],
  114: ['LONG_BINPUT', (machine, bytes) => machine.memoize(bytes.uint32())],
  148: ['MEMOIZE', (machine) => machine.memoize()],
  98: ['BUILD', (machine) => machine.build()],
};

/** Opcodes that create objects of arbitrary classes, or request objects from the loading program. */
const OBJECTS: Readonly<Record<number, string>> = {
  80: 'PERSID',
  81: 'BINPERSID',
  105: 'INST',
  111: 'OBJ',
  129: 'NEWOBJ',
  130: 'EXT1',
  131: 'EXT2',
  132: 'EXT4',
  146: 'NEWOBJ_EX',
};

/** A longer text cannot be an id and is not read. */
const MAX_TEXT_BYTES = 64 * 1024;
/**
 * Largest number of values and memo entries: enough for 33 million integer ids, or for 16 million text ids, each of which has a memo
 * entry.
 */
const MAX_VALUES = 2 ** 25;
/** Largest number of lists, tuples, dictionaries, byte strings, dtypes and arrays. A numpy array needs about six of them. */
const MAX_CONTAINERS = 2 ** 23;

/**
 * Reads the first object of a pickle by interpreting its opcodes. The pickle can only call the functions that create numpy's
 * dtypes and arrays, which are implemented in pickled-numpy.ts. A byte string becomes a byte range of the file (`PickleBlob`); its
 * bytes are not read. Time and memory depend on the number of opcodes, not on the size of the file.
 *
 * @throws TrawlError PICKLE_UNSAFE if the pickle names any other function or class, PICKLE_INVALID if it is damaged or has
 * too many values.
 */
export function unpickle(path: string): PickleValue {
  const bytes = new PickleBytes(path);
  try {
    return new PickleMachine(bytes).run();
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
    const bytes = this.#bytes;
    const protocol = bytes.byte() === PROTO ? bytes.byte() : 0;
    if (protocol < 2 || protocol > 5) throw bytes.invalid('it is not a pickle of protocol 2 to 5');
    for (let code = bytes.byte(); code !== STOP; code = bytes.byte()) {
      const push = PUSHES[code];
      if (push !== undefined) {
        const value = push[1](this, bytes);
        this.#countValue();
        this.#stack.push(value);
      } else {
        const action = ACTIONS[code];
        if (action === undefined) throw this.#refused(code);
        action[1](this, bytes);
      }
    }
    if (this.#below.length > 0 || this.#stack.length !== 1) throw bytes.invalid('STOP with an unfinished object');
    return this.pop();
  }

  #refused(code: number): Error {
    const bytes = this.#bytes;
    if (code === 0x97) return bytes.invalid('the values are not in the file (out-of-band buffers)');
    const name = OBJECTS[code];
    if (name === undefined) return bytes.invalid(`unsupported opcode 0x${code.toString(16).padStart(2, '0')}`);
    const named = name === 'INST' ? ` of ${JSON.stringify(`${bytes.line()}.${bytes.line()}`)}` : '';
    return unsafe(bytes, `it creates an object${named} (${name})`);
  }

  #countValue(): void {
    if (++this.#values > MAX_VALUES) throw this.#bytes.invalid(`more than ${MAX_VALUES} values`);
  }

  #container<T>(container: T): T {
    if (++this.#containers > MAX_CONTAINERS) {
      throw this.#bytes.invalid(`more than ${MAX_CONTAINERS} lists, tuples and arrays`);
    }
    return container;
  }

  sequence(kind: 'tuple' | 'list', items: PickleValue[]): PickleValue {
    return this.#container({ kind, items });
  }

  dictionary(items: PickleValue[]): PickleValue {
    return this.#container({ kind: 'dictionary', items });
  }

  /** Ids, shapes and offsets are never floats, so the number is not read. */
  float(): PickleValue {
    this.#bytes.skip(8);
    return Number.NaN;
  }

  blob(length: number): PickleValue {
    return this.#container({ kind: 'bytes', range: this.#bytes.skip(length) });
  }

  text(length: number): PickleValue {
    if (length <= MAX_TEXT_BYTES) return this.#bytes.text(length);
    return this.#container({ kind: 'text', range: this.#bytes.skip(length) });
  }

  top(): PickleValue {
    const top = this.#stack.at(-1);
    if (top === undefined) throw this.#bytes.invalid('the stack is empty');
    return top;
  }

  pop(): PickleValue {
    const top = this.top();
    this.#stack.pop();
    return top;
  }

  popMany(count: number): PickleValue[] {
    if (this.#stack.length < count) throw this.#bytes.invalid('the stack has too few values');
    return this.#stack.splice(this.#stack.length - count);
  }

  /** Counts as a container, so that a file of MARKs cannot fill the memory. */
  mark(): void {
    this.#below.push(this.#container(this.#stack));
    this.#stack = [];
  }

  popMark(): PickleValue[] {
    const below = this.#below.pop();
    if (below === undefined) throw this.#bytes.invalid('the stack has no MARK');
    const items = this.#stack;
    this.#stack = below;
    return items;
  }

  append(items: readonly PickleValue[]): void {
    const list = this.top();
    if (!isKind(list, 'list')) throw this.#bytes.invalid('an item is appended to something that is not a list');
    for (const item of items) list.items.push(item);
  }

  setItems(items: readonly PickleValue[]): void {
    const target = this.top();
    if (!isKind(target, 'dictionary') || items.length % 2 !== 0) {
      throw this.#bytes.invalid('an item is set on something that is not a dictionary');
    }
    for (const item of items) target.items.push(item);
  }

  /** Writers number memo entries from 0 without gaps. Gaps are refused because they would use memory. */
  memoize(index = this.#memo.length): void {
    if (index > this.#memo.length) throw this.#bytes.invalid(`memo entry ${index} before entry ${this.#memo.length}`);
    this.#countValue();
    this.#memo[index] = this.top();
  }

  recall(index: number): PickleValue {
    const value = this.#memo[index];
    if (value === undefined) throw this.#bytes.invalid(`memo entry ${index} is used before it is set`);
    return value;
  }

  global(module: string, name: string): PickleValue {
    return this.#container(allowedGlobal(`${module}.${name}`, this.#bytes));
  }

  stackGlobal(): PickleValue {
    const [module, name] = this.popMany(2);
    if (typeof module !== 'string' || typeof name !== 'string') {
      throw this.#bytes.invalid('a function name is not a text');
    }
    // A dotted name would reach attributes of an allowed class.
    if (name.includes('.')) throw unsafe(this.#bytes, `it names ${JSON.stringify(`${module}.${name}`)}`);
    return this.global(module, name);
  }

  reduce(): PickleValue {
    const [callee, args] = this.popMany(2);
    return this.#container(reduce(callee!, args!, this.#bytes));
  }

  build(): void {
    const state = this.pop();
    build(this.top(), state, this.#bytes);
  }
}

function numberIfSafe(value: bigint): number | bigint {
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

import { constants } from 'node:os';
import { throwIfCancelled } from '../../base/abort.ts';
import { type ErrorCode, isNodeError, TrawlError } from '../../base/errors.ts';
import { defined } from '../../base/objects.ts';
import { writeFailure } from '../../base/system/write-failure.ts';

type Signature = (...args: never[]) => unknown;
declare const signature: unique symbol;

/** A function of the addon that answers at once. */
export interface Call<F extends Signature> {
  readonly isJob: false;
  readonly [signature]?: F;
}

/** A function of the addon that runs on one of its threads and can be cancelled. */
export interface Job<F extends Signature> {
  readonly isJob: true;
  readonly [signature]?: F;
}

/** The only declaration of a function; its name is its key in a table of functions. The addon has it with the same arguments. */
export function call<F extends Signature>(): Call<F> {
  return { isJob: false };
}

/** As `call`, with the result that the promise resolves to. The addon's function has one more argument, the id, in front. */
export function job<F extends Signature>(): Job<F> {
  return { isJob: true };
}

type FunctionTable = Readonly<Record<string, Call<Signature> | Job<Signature>>>;

/** The functions of a table as TypeScript calls them. Their errors are `TrawlError`s; a bug of the caller is a TypeError. */
export type Functions<Table extends FunctionTable> = {
  readonly [Name in keyof Table]: Table[Name] extends Call<infer F>
    ? F
    : Table[Name] extends Job<infer F>
      ? (...args: [...Parameters<F>, signal?: AbortSignal | undefined]) => Promise<ReturnType<F>>
      : never;
};

/** Makes the functions of a table from an addon's: numbers the jobs, cancels them, translates errors. */
export function functionsOf<Table extends FunctionTable>(
  table: Table,
  addon: Readonly<Record<string, (...args: unknown[]) => unknown>>,
): Functions<Table> {
  let nextId = 0;
  const runJob = async (name: string, args: unknown[]): Promise<unknown> => {
    const signal = args.at(-1) instanceof AbortSignal ? (args.pop() as AbortSignal) : undefined;
    throwIfCancelled(signal);
    const id = nextId++;
    const onAbort = (): void => void addon['cancel']!(id);
    signal?.addEventListener('abort', onAbort);
    try {
      return await addon[name]!(id, ...args);
    } catch (error) {
      throw fromNative(error);
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  };
  const runCall = (name: string, args: unknown[]): unknown => {
    try {
      return addon[name]!(...args);
    } catch (error) {
      throw fromNative(error);
    }
  };
  const made = Object.entries(table).map(([name, { isJob }]) => {
    const run = isJob ? runJob : runCall;
    return [name, (...args: unknown[]): unknown => run(name, args)];
  });
  return Object.fromEntries(made) as Functions<Table>;
}

/** An instruction set that the engine was compiled for. */
export interface InstructionSet {
  readonly name: string;
  readonly available: boolean;
  /** The machine's features that make it available, or the missing ones. */
  readonly reason: string;
}

/** An error of the addon (native/addon/errors.hpp). */
interface NativeError {
  readonly message: string;
  readonly code: string;
  /** Row or query, and coordinate; −1 where none. */
  readonly item: number;
  readonly column: number;
  /** Where the operating system refused a call: the number above 0, and the file. */
  readonly errno?: number;
  readonly path?: string;
}

/** Codes of the engine without a refusal of the operating system; any other is a bug of the caller. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  BAD_FILE: 'INDEX_FILE_FOREIGN',
  FILE_CHANGED: 'FILE_CHANGED',
  NOT_FINITE: 'NON_FINITE_VECTOR',
  ISA_UNAVAILABLE: 'CONFIG_INVALID',
  NO_THREADS: 'OUT_OF_MEMORY',
  CANCELLED: 'CANCELLED',
  DEVICE_UNAVAILABLE: 'DEVICE_UNAVAILABLE',
  OUT_OF_MEMORY: 'OUT_OF_MEMORY',
};

const ERRNO_NAMES = new Map(Object.entries(constants.errno).map(([name, errno]) => [errno, name]));

/** The addon's error as a `TrawlError`; an error of another origin, or a bug of the caller, as it is. @internal Exported for tests. */
export function fromNative(error: unknown): unknown {
  if (!isNodeError(error)) return error;
  const native = error as unknown as NativeError;
  const { code, message, item, column } = native;
  if (code === 'WRITE_FAILED' || code === 'READ_FAILED') return fromSystem(native, error);
  const known = CODES[code];
  if (known === undefined) return error;
  // As of a missing file, so that it ends the sentence.
  const text = known === 'FILE_CHANGED' ? `${message}.` : message;
  const details = defined({ item: item === -1 ? undefined : item, column: column === -1 ? undefined : column });
  return new TrawlError(known, text, { details, cause: error });
}

function fromSystem({ code, message, errno = 0, path = '' }: NativeError, cause: unknown): TrawlError {
  const reason = ERRNO_NAMES.get(errno) ?? `errno ${errno}`;
  const options = { details: { path, reason }, cause };
  if (reason === 'ENOMEM') {
    return new TrawlError('OUT_OF_MEMORY', `${message}. Free memory or raise its limit, then try again.`, options);
  }
  if (code === 'READ_FAILED') {
    return new TrawlError('INDEX_FILE_MISSING', `${message}. Restore the file or build the index again.`, options);
  }
  const failure = writeFailure(Object.assign(new Error(message, { cause }), { code: reason, errno, path }), path);
  if (failure instanceof TrawlError) return failure;
  const advice = 'Check the disk and its mount, or choose another path.';
  return new TrawlError('OUTPUT_NOT_WRITABLE', `${message}. ${advice}`, options);
}

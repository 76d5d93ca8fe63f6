import { throwIfCancelled } from '../../base/abort.ts';
import { fromNative } from './native-error.ts';

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

export type FunctionTable = Readonly<Record<string, Call<Signature> | Job<Signature>>>;

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

import { throwIfCancelled } from '../../base/abort.ts';
import { fromNative } from './native-error.ts';

/** Runs the addon's asynchronous calls: numbers them, cancels them, translates their errors. */
export class NativeCalls {
  readonly #addon: { cancel(id: number): void };
  #nextId = 0;

  constructor(addon: { cancel(id: number): void }) {
    this.#addon = addon;
  }

  /** @throws TrawlError CANCELLED once `signal` is aborted; the errors of native-error.ts. */
  async run<T>(signal: AbortSignal | undefined, start: (id: number) => Promise<T>): Promise<T> {
    throwIfCancelled(signal);
    const id = this.#nextId++;
    const onAbort = (): void => this.#addon.cancel(id);
    signal?.addEventListener('abort', onAbort);
    try {
      return await start(id);
    } catch (error) {
      throw fromNative(error);
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }
}

/** Runs a synchronous call of the addon and translates its errors. */
export function translate<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw fromNative(error);
  }
}

import { cancelled, throwIfCancelled } from '../base/abort.ts';

/** Runs tasks one after another, in the order of their calls. */
export class OneAtATime {
  #last: Promise<void> = Promise.resolve();

  /**
   * Runs a task when the earlier ones have ended. Rejects with its error, or with CANCELLED as soon as the signal is aborted while
   * it waits; it is not started then.
   */
  async run<T>(task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    throwIfCancelled(signal);
    const before = this.#last;
    let end = (): void => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#last = before.then(() => ended);
    try {
      await orAborted(before, signal);
      return await task();
    } finally {
      end();
    }
  }
}

function orAborted(waiting: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return waiting;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(cancelled());
    signal.addEventListener('abort', abort, { once: true });
    void waiting.then(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    });
  });
}

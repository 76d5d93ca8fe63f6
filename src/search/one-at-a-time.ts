import { throwIfCancelled, untilAborted } from '../base/abort.ts';

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
      await untilAborted(before, signal);
      return await task();
    } finally {
      end();
    }
  }
}

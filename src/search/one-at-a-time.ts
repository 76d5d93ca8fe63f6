import { untilAborted } from '../base/abort.ts';

/** Runs tasks one after another, in the order of their calls. */
export class OneAtATime {
  #last: Promise<void> = Promise.resolve();

  /**
   * Runs a task when the earlier ones have ended, and rejects with its error. If the signal is aborted while the task waits, rejects with
   * CANCELLED at once and never starts the task.
   */
  run<T>(task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const before = this.#last;
    const running = untilAborted(before, signal).then(task);
    this.#last = Promise.allSettled([before, running]).then(() => undefined);
    return running;
  }
}

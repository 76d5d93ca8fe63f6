import { setImmediate as nextIteration } from 'node:timers/promises';
import { throwIfCancelled } from './abort.ts';

/** How long one piece of work may occupy the event loop before it yields, in milliseconds. */
const SLICE_MS = 2;

/** Divides long work into time slices, between which the event loop serves other requests. */
export class TimeSlice {
  readonly #signal: AbortSignal | undefined;
  #start = performance.now();

  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  get isOver(): boolean {
    return performance.now() - this.#start >= SLICE_MS;
  }

  /**
   * Yields to the event loop and starts the next slice.
   *
   * @throws TrawlError CANCELLED if the signal was aborted.
   */
  async yield(): Promise<void> {
    await nextIteration();
    throwIfCancelled(this.#signal);
    this.#start = performance.now();
  }
}

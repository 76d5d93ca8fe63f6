import { throwIfCancelled } from '../../base/abort.ts';

/** Bounds the number of requests at the same time. Those that wait begin in their order. */
export class RequestSlots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(slots: number) {
    this.#free = slots;
  }

  /** @throws TrawlError CANCELLED if the signal is aborted before the work begins. */
  async run<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      throwIfCancelled(signal);
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}

import { setTimeout as sleep } from 'node:timers/promises';

/** Delays transfers so that all together take at most a number of bytes per second. */
export class RateLimit {
  readonly #bytesPerSecond: number | undefined;
  /** By `performance.now()`: when the bytes so far are within the limit. */
  #freeAt = 0;

  constructor(bytesPerSecond: number | undefined) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  async take(bytes: number, signal: AbortSignal): Promise<void> {
    if (this.#bytesPerSecond === undefined) return;
    const now = performance.now();
    this.#freeAt = Math.max(this.#freeAt, now) + (1000 * bytes) / this.#bytesPerSecond;
    const wait = this.#freeAt - now;
    // Shorter waits than timers keep are left to the next chunk.
    if (wait > 20) await sleep(wait, undefined, { signal }).catch(() => undefined);
  }
}

/** Measures how long a call was queued: the time during which none of its items was processed. */
export class QueueClock {
  #waitedMs = 0;
  #waitingSince = performance.now();
  #running = 0;

  /** Time spent queued until the last `started`, in milliseconds. */
  get waitedMs(): number {
    return this.#waitedMs;
  }

  started(items: number): void {
    if (this.#running === 0) this.#waitedMs += performance.now() - this.#waitingSince;
    this.#running += items;
  }

  finished(items: number): void {
    this.#running -= items;
    if (this.#running === 0) this.#waitingSince = performance.now();
  }
}

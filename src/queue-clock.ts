/** How long a call waited for others: the time in which it had items to be done and none of them was in anybody's hands. */
export class QueueClock {
  #waitedMs = 0;
  #waitingSince = performance.now();
  #inHand = 0;

  /** Milliseconds so far, up to when its last item was taken. */
  get waitedMs(): number {
    return this.#waitedMs;
  }

  taken(items: number): void {
    if (this.#inHand === 0) this.#waitedMs += performance.now() - this.#waitingSince;
    this.#inHand += items;
  }

  returned(items: number): void {
    this.#inHand -= items;
    if (this.#inHand === 0) this.#waitingSince = performance.now();
  }
}

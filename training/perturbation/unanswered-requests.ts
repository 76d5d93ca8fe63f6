/** Requests that are remembered; the one that was remembered first is forgotten. With keys of 43 characters an entry takes about 150 bytes. */
const MAX_REQUESTS = 100_000;

/**
 * How often in a row equal requests were kept from their answer: failed on purpose, or given up by the client while they were held back.
 * The number takes part in the next draw. A client that repeats a request thus gets a new draw each time, and after an answer the same
 * draws as before.
 */
export class UnansweredRequests {
  readonly #counts = new Map<string, number>();

  /** Unanswered requests since the last answer. */
  count(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  unanswered(key: string): void {
    const count = this.count(key) + 1;
    // Deleted first, so that it becomes the last of the map.
    this.#counts.delete(key);
    this.#counts.set(key, count);
    if (this.#counts.size > MAX_REQUESTS) this.#counts.delete(this.#counts.keys().next().value!);
  }

  answered(key: string): void {
    this.#counts.delete(key);
  }
}

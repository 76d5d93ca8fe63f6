interface Recent {
  /** `performance.now()` at the start of the work. */
  readonly begun: number;
  readonly result: Promise<unknown>;
}

/** Results that several users share, as long as they are recent enough for each of them. A failure is not kept. */
export class RecentResults {
  readonly #results = new Map<string, Recent>();

  /** The result of the work named `key`; begins it unless it was begun at `since` (`performance.now()`) or later. */
  get<T>(key: string, since: number, begin: () => Promise<T>): Promise<T> {
    const found = this.#results.get(key);
    if (found !== undefined && found.begun >= since) return found.result as Promise<T>;
    const made = { begun: performance.now(), result: begin() };
    this.#results.set(key, made);
    made.result.catch(() => {
      if (this.#results.get(key) === made) this.#results.delete(key);
    });
    return made.result;
  }
}

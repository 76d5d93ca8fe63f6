import { TrawlError } from '../../src/base/errors.ts';
import { defined } from '../../src/base/objects.ts';

export interface RefresherOptions {
  /** Makes what was written before the call visible. */
  readonly refresh: () => Promise<void>;
  /** Whether something was written that no search finds yet. */
  readonly isPending: () => boolean;
  /** Time between a write and its refresh in milliseconds; negative: only requests refresh. */
  readonly intervalMs: () => number;
  /** Called when a refresh fails that nobody waits for. */
  readonly onFailure: (error: unknown) => void;
  /** While writes continue, a refresh begins only after this many times the duration of the last one. Default: 4. */
  readonly rest?: number;
  /** Writes have ended if there was none for this time in milliseconds. Default: 5,000. */
  readonly quietMs?: number;
}

/** Refreshes on their own take at most a fifth of the time while an index is filled. */
const REST = 4;
const QUIET_MS = 5_000;
const RETRY_MS = 30_000;

/** Refreshes an index one at a time, on request and some time after writes. */
export class Refresher {
  readonly #options: Required<RefresherOptions>;
  #running: Promise<void> | undefined;
  /** A refresh that begins when the running one has ended, for all requests meanwhile. */
  #next: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Duration and end of the last refresh, and the last write, by `performance.now()`. */
  #lastMs = 0;
  #lastEnd = 0;
  #lastWrite = 0;
  #closed = false;

  constructor(options: RefresherOptions) {
    this.#options = { rest: REST, quietMs: QUIET_MS, ...defined(options) };
  }

  /** Resolves when everything written before the call is visible. @throws the refresh's error. */
  request(): Promise<void> {
    if (this.#closed) return Promise.reject(new TrawlError('NOT_READY', 'The index is being closed.'));
    if (this.#running === undefined) return this.#options.isPending() ? this.#start() : Promise.resolve();
    this.#next ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        return this.request();
      });
    return this.#next;
  }

  /** To be called after each write: a refresh follows after the interval, unless one comes first. */
  wrote(): void {
    this.#lastWrite = performance.now();
    this.#afterInterval();
  }

  /** Refreshes now, without waiting for it, whatever the interval is. */
  soon(): void {
    this.#arm(0);
  }

  /** Refuses later requests; resolves when the running refresh has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#disarm();
    await this.#running?.catch(() => undefined);
  }

  #afterInterval(): void {
    const interval = this.#options.intervalMs();
    if (interval >= 0) this.#arm(interval);
  }

  #arm(delay: number): void {
    if (this.#timer !== undefined || this.#running !== undefined || this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const wait = this.#restLeft();
      if (wait > 0) return this.#arm(wait);
      this.request().catch((error: unknown) => {
        if (this.#closed) return;
        this.#options.onFailure(error);
        this.#disarm();
        this.#arm(RETRY_MS);
      });
    }, delay);
    this.#timer.unref();
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Milliseconds until the rest after the last refresh is over, or until writes have ended. */
  #restLeft(): number {
    const { rest, quietMs } = this.#options;
    return Math.min(this.#lastEnd + rest * this.#lastMs, this.#lastWrite + quietMs) - performance.now();
  }

  #start(): Promise<void> {
    this.#disarm();
    const began = performance.now();
    this.#running = this.#options.refresh().finally(() => {
      this.#running = undefined;
      this.#lastEnd = performance.now();
      this.#lastMs = this.#lastEnd - began;
      if (this.#options.isPending()) this.#afterInterval();
    });
    return this.#running;
  }
}

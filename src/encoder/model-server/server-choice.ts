import { cancelled, throwIfCancelled } from '../../base/abort.ts';
import { backoffMs } from '../../base/net/retries.ts';

interface Server {
  running: number;
  failures: number;
  /** `performance.now()` until which it gets no request. */
  restsUntil: number;
}

interface Waiting {
  readonly server: number | undefined;
  readonly start: (server: number) => void;
}

export interface ServerLimits {
  /** Requests at the same time, for each server. */
  readonly concurrency: number;
  /** Pause before the first retry, in milliseconds; it doubles with each failure in a row. */
  readonly firstWaitMs: number;
  /** Longest pause, also if the server asks for a longer one. */
  readonly maxWaitMs: number;
}

/** Decides which server gets which request and when: first come, first served, the server with the fewest running requests. */
export class ServerChoice {
  readonly #servers: readonly Server[];
  readonly #limits: ServerLimits;
  readonly #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(count: number, limits: ServerLimits) {
    this.#servers = Array.from({ length: count }, () => ({ running: 0, failures: 0, restsUntil: 0 }));
    this.#limits = limits;
  }

  /** Waits for a server, or for `only` this one; returns its number, which `release` gets once. Throws CANCELLED. */
  async acquire(only: number | undefined, signal: AbortSignal): Promise<number> {
    throwIfCancelled(signal);
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        server: only,
        start(chosen) {
          signal.removeEventListener('abort', abort);
          resolve(chosen);
        },
      };
      const abort = (): void => {
        const at = this.#waiting.indexOf(waiting);
        if (at >= 0) this.#waiting.splice(at, 1);
        this.#startNext();
        reject(cancelled());
      };
      signal.addEventListener('abort', abort, { once: true });
      this.#waiting.push(waiting);
      this.#startNext();
    });
  }

  /** @param askedMs the pause that the server asked for. */
  release(number: number, result: 'answered' | 'failed', askedMs?: number): void {
    const now = performance.now();
    const server = this.#servers[number]!;
    server.running--;
    if (result === 'answered') server.failures = 0;
    else {
      // Requests that failed together count once.
      if (now >= server.restsUntil) server.failures++;
      const waitMs = Math.min(this.#limits.maxWaitMs, askedMs ?? backoffMs(server.failures, this.#limits));
      server.restsUntil = Math.max(server.restsUntil, now + waitMs);
    }
    this.#startNext();
  }

  /** Starts the waiting requests that a server can take, oldest first. */
  #startNext(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const now = performance.now();
    for (let at = 0; at < this.#waiting.length; ) {
      const { server: only, start } = this.#waiting[at]!;
      const chosen = this.#choose(only, now);
      if (chosen === undefined) {
        at++;
        continue;
      }
      this.#waiting.splice(at, 1);
      this.#servers[chosen]!.running++;
      start(chosen);
    }
    if (this.#waiting.length === 0) return;
    const rests = this.#servers.map(({ restsUntil }) => restsUntil).filter((until) => until > now);
    if (rests.length === 0) return;
    this.#timer = setTimeout(() => this.#startNext(), Math.max(1, Math.ceil(Math.min(...rests) - now)));
  }

  #choose(only: number | undefined, now: number): number | undefined {
    let best: number | undefined;
    for (const [i, { running, restsUntil }] of this.#servers.entries()) {
      if ((only !== undefined && i !== only) || running >= this.#limits.concurrency || restsUntil > now) continue;
      if (best === undefined || running < this.#servers[best]!.running) best = i;
    }
    return best;
  }
}

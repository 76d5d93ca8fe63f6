import { cancelled } from '../../base/abort.ts';
import { backoffMs } from '../../base/net/retries.ts';

interface Server {
  running: number;
  /** Failures in a row. */
  failures: number;
  /** `performance.now()` until which it gets no request. */
  restsUntil: number;
}

interface Waiting {
  readonly server: number | undefined;
  readonly start: (server: number) => void;
}

/** A request's right to run on a server. */
interface ServerSlot {
  readonly server: number;
  /** @param waitMs the pause that the server asked for. */
  release(result: 'answered' | 'failed', waitMs?: number): void;
}

interface ServerLimits {
  /** Running requests of one server. */
  readonly concurrency: number;
  /** Pause after the first failure, in milliseconds; it doubles with each failure in a row. */
  readonly firstWaitMs: number;
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

  /**
   * Waits for a server, or for `only` this one.
   *
   * @throws TrawlError CANCELLED.
   */
  async acquire(only: number | undefined, signal: AbortSignal): Promise<ServerSlot> {
    if (signal.aborted) throw cancelled();
    const server = await new Promise<number>((resolve, reject) => {
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
    let isReleased = false;
    return {
      server,
      release: (result, waitMs) => {
        if (isReleased) return;
        isReleased = true;
        this.#released(this.#servers[server]!, result, waitMs);
      },
    };
  }

  #released(server: Server, result: 'answered' | 'failed', asked: number | undefined): void {
    const now = performance.now();
    server.running--;
    if (result === 'answered') server.failures = 0;
    else {
      // Requests that failed together count once.
      if (now >= server.restsUntil) server.failures++;
      const waitMs = Math.min(this.#limits.maxWaitMs, asked ?? backoffMs(server.failures, this.#limits));
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

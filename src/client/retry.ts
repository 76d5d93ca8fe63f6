/**
 * Retries. A call is repeated after a 503 or a lost connection, because all calls only read. It makes up to `attempts` rounds; a
 * round tries each server once, except those that are set aside. Between rounds the client waits as long as the server's
 * `retry-after` says, at most `maxWaitMs`. Without that header the n-th wait, from n = 0, is `firstWaitMs` × 2^n, shortened by up
 * to half at random so that many clients do not retry at the same time.
 */
export interface RetryOptions {
  /** Rounds over the servers, at least 1. Default 10. */
  readonly attempts: number;
  /** Default 250. */
  readonly firstWaitMs: number;
  /** Default 30,000. */
  readonly maxWaitMs: number;
  /** How long a server is set aside after it is unreachable, times out or is not ready. Default 10,000. */
  readonly cooldownMs: number;
}

export const DEFAULT_RETRY: RetryOptions = { attempts: 10, firstWaitMs: 250, maxWaitMs: 30_000, cooldownMs: 10_000 };

export function checkRetry(retry: RetryOptions): RetryOptions {
  if (!Number.isSafeInteger(retry.attempts) || retry.attempts < 1) {
    throw new RangeError(`attempts is ${retry.attempts}; it must be a whole number of at least 1.`);
  }
  for (const name of ['firstWaitMs', 'maxWaitMs', 'cooldownMs'] as const) {
    if (!(retry[name] >= 0)) throw new RangeError(`${name} is ${retry[name]}; it must not be negative.`);
  }
  return retry;
}

/** Milliseconds to wait after a round; rounds are counted from 0. */
export function waitMs(
  attempt: number,
  retryAfter: string | null,
  { firstWaitMs, maxWaitMs }: Pick<RetryOptions, 'firstWaitMs' | 'maxWaitMs'>,
): number {
  const serverMs = retryAfterMs(retryAfter);
  if (serverMs !== undefined) return Math.min(serverMs, maxWaitMs);
  return Math.min(firstWaitMs * 2 ** Math.min(attempt, 60), maxWaitMs) * (0.5 + Math.random() / 2);
}

/** Parses `retry-after`: seconds or a date (RFC 9110, section 10.2.3). */
function retryAfterMs(retryAfter: string | null): number | undefined {
  if (retryAfter === null) return undefined;
  const text = retryAfter.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  // Date.parse also accepts texts that are not HTTP dates, such as "-1".
  const date = /GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** Resolves after `ms`; rejects with the signal's reason as soon as it aborts. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout>;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return untilAborted(over, signal).finally(() => clearTimeout(timer));
}

/**
 * Waits for `fetch`, and rejects with the signal's reason also where `fetch` stays pending after an abort, as the `fetch` of Node.js 22
 * does now and then when a connection ends.
 */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise<T>((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

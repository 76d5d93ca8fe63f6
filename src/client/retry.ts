/**
 * Calls are repeated after 503 and after lost connections: all of them are reads. After a 503 the server's `retry-after` is
 * waited for, at most `maxWaitMs`; else the n-th wait is up to `firstWaitMs` × 2^n, shortened at random so that many
 * clients do not come back at once.
 */
export interface RetryOptions {
  /** Calls in all, at least 1. */
  readonly attempts: number;
  readonly firstWaitMs: number;
  readonly maxWaitMs: number;
}

export const DEFAULT_RETRY: RetryOptions = { attempts: 10, firstWaitMs: 250, maxWaitMs: 30_000 };

/** @throws RangeError for what means nothing. */
export function checkRetry(retry: RetryOptions): RetryOptions {
  if (!Number.isSafeInteger(retry.attempts) || retry.attempts < 1) {
    throw new RangeError(`attempts is ${retry.attempts}; it must be a whole number of at least 1.`);
  }
  if (!(retry.firstWaitMs >= 0) || !(retry.maxWaitMs >= 0)) throw new RangeError('Waits must not be negative.');
  return retry;
}

/** How long to wait after the attempt of that number, counted from 0. */
export function waitMs(attempt: number, retryAfter: string | null, { firstWaitMs, maxWaitMs }: RetryOptions): number {
  const asked = askedMs(retryAfter);
  if (asked !== undefined) return Math.min(asked, maxWaitMs);
  return Math.min(firstWaitMs * 2 ** Math.min(attempt, 60), maxWaitMs) * (0.5 + Math.random() / 2);
}

/** Seconds or a date (RFC 9110, section 10.2.3). */
function askedMs(retryAfter: string | null): number | undefined {
  if (retryAfter === null) return undefined;
  const text = retryAfter.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  // Date.parse takes much that is no HTTP date, "-1" among it.
  const date = /GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** Rejects with the signal's reason as soon as it is aborted. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}

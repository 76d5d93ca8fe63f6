import { setTimeout as sleep } from 'node:timers/promises';
import { cancelled, throwIfCancelled } from '../src/abort.ts';
import { TrawlError } from '../src/errors.ts';

/** A failure that may not repeat: a broken connection, a stall, a server that is overloaded. */
export class TransientFailure extends Error {
  override readonly name = 'TransientFailure';
  readonly retryAfterMs: number;

  constructor(reason: string, { retryAfterMs = 0, cause }: { retryAfterMs?: number; cause?: unknown } = {}) {
    super(reason, cause === undefined ? undefined : { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

export interface RetryLimits {
  /** Failed attempts in a row, without progress in between, after which the work fails. */
  readonly attempts: number;
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
}

export const RETRY_LIMITS: RetryLimits = { attempts: 6, firstDelayMs: 500, maxDelayMs: 20_000 };

/**
 * Repeats `work` after a TransientFailure. `work` calls `progressed` to count from 0 again.
 *
 * @throws TrawlError SOURCE_UNREACHABLE after the last attempt; CANCELLED; other errors of `work`.
 */
export async function withRetries<T>(
  what: string,
  work: (progressed: () => void) => Promise<T>,
  { limits, signal, note }: { limits: RetryLimits; signal: AbortSignal; note: (text: string) => void },
): Promise<T> {
  let failures = 0;
  for (;;) {
    throwIfCancelled(signal);
    try {
      return await work(() => {
        failures = 0;
      });
    } catch (error) {
      if (signal.aborted) throw cancelled();
      if (!(error instanceof TransientFailure)) throw error;
      failures++;
      if (failures >= limits.attempts) {
        throw new TrawlError(
          'SOURCE_UNREACHABLE',
          `${what}: ${error.message}; given up after ${failures} attempts. What was copied is kept: run the same command again.`,
          { details: { what, attempts: failures }, cause: error },
        );
      }
      const backoff = Math.min(limits.maxDelayMs, limits.firstDelayMs * 2 ** (failures - 1));
      const delay = Math.max(Math.min(error.retryAfterMs, 60_000), backoff * (0.5 + Math.random() / 2));
      note(`${what}: ${error.message}; tried again in ${(delay / 1000).toFixed(1)} s`);
      await sleep(delay, undefined, { signal }).catch(() => undefined);
    }
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import { cancelled, throwIfCancelled } from '../abort.ts';

/** A failure that may not repeat: a broken connection, a stall, an overloaded server. */
export class TransientFailure extends Error {
  override readonly name = 'TransientFailure';
  /** The server's Retry-After. */
  readonly retryAfterMs: number | undefined;

  constructor(reason: string, options: { retryAfterMs?: number; cause?: unknown } = {}) {
    super(reason, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs;
  }
}

export interface RetryLimits {
  /** Number of consecutive failed attempts, without progress in between, after which the work fails. */
  readonly attempts: number;
  /** Delay before the second attempt; doubles with each further one, up to `maxDelayMs`. */
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** If the server asks for a longer pause, the work fails at once. */
  readonly maxRetryAfterMs: number;
}

export interface Retrying {
  /** Name of the work for messages, such as `model.safetensors`. */
  readonly what: string;
  readonly limits: RetryLimits;
  readonly signal?: AbortSignal;
  /** Called with a sentence before each pause. */
  readonly note?: (text: string) => void;
  /** The error for work that failed for good. `why` ends its message, such as `given up after 6 attempts`. */
  readonly givenUp: (failure: TransientFailure, attempts: number, why: string) => Error;
}

/**
 * Repeats `work` after a TransientFailure. `work` calls `progressed` to reset the failure count, so a long transfer may fail
 * any number of times as long as it progresses.
 *
 * @throws the error of `givenUp` after the last attempt; TrawlError CANCELLED; any other error of `work`.
 */
export async function withRetries<T>(
  work: (progressed: () => void) => Promise<T>,
  { what, limits, signal, note, givenUp }: Retrying,
): Promise<T> {
  let failures = 0;
  for (;;) {
    throwIfCancelled(signal);
    try {
      return await work(() => {
        failures = 0;
      });
    } catch (error) {
      if (signal?.aborted) throw cancelled();
      if (!(error instanceof TransientFailure)) throw error;
      failures++;
      const asked = error.retryAfterMs ?? 0;
      if (asked > limits.maxRetryAfterMs) {
        throw givenUp(error, failures, `the server asks to wait ${Math.ceil(asked / 1000)} s`);
      }
      if (failures >= limits.attempts) throw givenUp(error, failures, `given up after ${failures} attempts`);
      const backoff = Math.min(limits.maxDelayMs, limits.firstDelayMs * 2 ** (failures - 1));
      // Jitter, so that clients disconnected together do not reconnect together.
      const delay = Math.max(asked, backoff * (0.5 + Math.random() / 2));
      note?.(`${what}: ${error.message}; retrying in ${(delay / 1000).toFixed(1)} s`);
      await sleep(delay, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
    }
  }
}

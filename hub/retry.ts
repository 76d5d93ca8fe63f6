import { setTimeout as sleep } from 'node:timers/promises';
import { cancelled, throwIfCancelled } from '../src/abort.ts';
import { TrawlError } from '../src/errors.ts';

/** Something that may go well when it is tried again: a broken connection, a stall, an overloaded server. */
export class TransientFailure extends Error {
  override readonly name = 'TransientFailure';
  /** What the server asked for with Retry-After. */
  readonly retryAfterMs: number | undefined;

  constructor(reason: string, options: { retryAfterMs?: number | undefined; cause?: unknown } = {}) {
    super(reason, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs;
  }
}

export interface RetryLimits {
  /** Attempts without progress before it is given up. */
  readonly attempts: number;
  /** Before the second attempt; doubled for each further one, up to `longestDelayMs`. */
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
  /** A server that wants a longer pause than this is given up at once. */
  readonly longestRetryAfterMs: number;
}

export const RETRY_LIMITS: RetryLimits = {
  attempts: 6,
  firstDelayMs: 1000,
  longestDelayMs: 30_000,
  longestRetryAfterMs: 300_000,
};

export interface Retrying {
  /** What is tried, for messages: `model.safetensors`. */
  readonly what: string;
  readonly limits: RetryLimits;
  readonly signal?: AbortSignal | undefined;
  /** A sentence for a person before each pause. */
  readonly onNotice?: ((text: string) => void) | undefined;
}

/**
 * Repeats `work` after a TransientFailure. `work` calls `progressed` when an attempt brought enough to count the failures
 * anew, so that a long transfer may break off often.
 *
 * @throws TrawlError HUB_UNREACHABLE when it is given up; CANCELLED; whatever else `work` throws.
 */
export async function withRetries<T>(
  work: (progressed: () => void) => Promise<T>,
  { what, limits, signal, onNotice }: Retrying,
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
      const pause = error.retryAfterMs ?? 0;
      if (failures >= limits.attempts || pause > limits.longestRetryAfterMs) {
        throw givenUp(what, error, failures, pause > limits.longestRetryAfterMs ? pause : 0);
      }
      const backoff = Math.min(limits.longestDelayMs, limits.firstDelayMs * 2 ** (failures - 1));
      // Many clients that a server dropped at once should not come back at once.
      const delay = Math.max(pause, backoff * (0.5 + Math.random() / 2));
      onNotice?.(`${what}: ${error.message}; trying again in ${(delay / 1000).toFixed(1)} s`);
      await sleep(delay, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
    }
  }
}

function givenUp(what: string, failure: TransientFailure, failures: number, pause: number): TrawlError {
  const when =
    pause > 0 ? `the server asks to wait ${Math.ceil(pause / 1000)} s` : `given up after ${failures} attempts`;
  return new TrawlError(
    'HUB_UNREACHABLE',
    `${what}: ${failure.message}; ${when}. What has arrived is kept: run the same command again later to go on from ` +
      'there. If it never works, look at the network and at HF_ENDPOINT.',
    { details: { what, attempts: failures }, cause: failure },
  );
}

/** Milliseconds of a Retry-After header: seconds or a date. Undefined where there is none or it means nothing. */
export function retryAfterMs(header: string | null, now = Date.now()): number | undefined {
  if (header === null) return undefined;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const date = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

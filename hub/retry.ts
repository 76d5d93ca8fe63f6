import { setTimeout as sleep } from 'node:timers/promises';
import { cancelled, throwIfCancelled } from '../src/abort.ts';
import { TrawlError } from '../src/errors.ts';

/** A failure that may not repeat: a broken connection, a stall, an overloaded server. */
export class TransientFailure extends Error {
  override readonly name = 'TransientFailure';
  /** The server's Retry-After. */
  readonly retryAfterMs: number | undefined;

  constructor(reason: string, options: { retryAfterMs?: number | undefined; cause?: unknown } = {}) {
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

export const RETRY_LIMITS: RetryLimits = {
  attempts: 6,
  firstDelayMs: 1000,
  maxDelayMs: 30_000,
  maxRetryAfterMs: 300_000,
};

export interface Retrying {
  /** Name of the work for messages, such as `model.safetensors`. */
  readonly what: string;
  readonly limits: RetryLimits;
  readonly signal?: AbortSignal | undefined;
  /** Called with a sentence before each pause. */
  readonly onNotice?: ((text: string) => void) | undefined;
}

/**
 * Repeats `work` after a TransientFailure. `work` calls `progressed` to reset the failure count, so a long transfer may fail
 * any number of times as long as it progresses.
 *
 * @throws TrawlError HUB_UNREACHABLE after the last attempt; CANCELLED; any other error of `work`.
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
      if (failures >= limits.attempts || pause > limits.maxRetryAfterMs) {
        throw givenUp(what, error, failures, pause > limits.maxRetryAfterMs ? pause : 0);
      }
      const backoff = Math.min(limits.maxDelayMs, limits.firstDelayMs * 2 ** (failures - 1));
      // Jitter, so that clients disconnected together do not reconnect together.
      const delay = Math.max(pause, backoff * (0.5 + Math.random() / 2));
      onNotice?.(`${what}: ${error.message}; retrying in ${(delay / 1000).toFixed(1)} s`);
      await sleep(delay, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
    }
  }
}

function givenUp(what: string, failure: TransientFailure, failures: number, pause: number): TrawlError {
  const when =
    pause > 0 ? `the server asks to wait ${Math.ceil(pause / 1000)} s` : `given up after ${failures} attempts`;
  return new TrawlError(
    'HUB_UNREACHABLE',
    `${what}: ${failure.message}; ${when}. The received data is kept: run the same command again later to resume. If the ` +
      'error persists, check the network and HF_ENDPOINT.',
    { details: { what, attempts: failures }, cause: failure },
  );
}

/** Milliseconds of a Retry-After header, in seconds or as a date; undefined if it is missing or invalid. */
export function retryAfterMs(header: string | null, now = Date.now()): number | undefined {
  if (header === null) return undefined;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const date = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

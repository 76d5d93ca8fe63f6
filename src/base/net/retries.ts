import { setTimeout as sleep } from 'node:timers/promises';
import { throwIfCancelled } from '../abort.ts';
import { type ErrorCode, TrawlError } from '../errors.ts';

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

export interface RetryPolicy {
  /** Number of consecutive failed attempts, without progress in between, after which the work fails. */
  readonly attempts: number;
  /** Wait before the second attempt; doubles with each further one, up to `maxWaitMs`. */
  readonly firstWaitMs: number;
  readonly maxWaitMs: number;
  /**
   * A server may lengthen the wait up to this limit; if it asks for a longer wait, the work fails at once. Undefined: the wait is what the
   * server asks for, shorter or longer, up to `maxWaitMs`.
   */
  readonly maxRetryAfterMs?: number;
}

interface Retrying {
  readonly policy: RetryPolicy;
  readonly signal?: AbortSignal | undefined;
  /** Called before each wait. */
  readonly onWait?: ((reason: string, ms: number) => void) | undefined;
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
  { policy, signal, onWait, givenUp }: Retrying,
): Promise<T> {
  const { attempts, maxWaitMs, maxRetryAfterMs } = policy;
  let failures = 0;
  for (;;) {
    throwIfCancelled(signal);
    try {
      return await work(() => {
        failures = 0;
      });
    } catch (error) {
      throwIfCancelled(signal);
      if (!(error instanceof TransientFailure)) throw error;
      failures++;
      const asked = error.retryAfterMs;
      if (asked !== undefined && maxRetryAfterMs !== undefined && asked > maxRetryAfterMs) {
        throw givenUp(error, failures, `the server asks to wait ${Math.ceil(asked / 1000)} s`);
      }
      if (failures >= attempts) throw givenUp(error, failures, `given up after ${failures} attempts`);
      const own = backoffMs(failures, policy);
      const ms = maxRetryAfterMs === undefined ? Math.min(asked ?? own, maxWaitMs) : Math.max(asked ?? 0, own);
      onWait?.(error.message, ms);
      // An abort ends the wait; the loop throws for it.
      await sleep(ms, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** The wait after so many failures in a row, ≥ 1. It is random, so that clients disconnected together do not reconnect together. */
export function backoffMs(
  failures: number,
  { firstWaitMs, maxWaitMs }: Pick<RetryPolicy, 'firstWaitMs' | 'maxWaitMs'>,
): number {
  return Math.min(maxWaitMs, firstWaitMs * 2 ** Math.min(30, failures - 1)) * (0.5 + Math.random() / 2);
}

/** The retries of transfers from one kind of source. */
export interface TransferPolicy extends RetryPolicy {
  /** The code of the error after the last attempt. */
  readonly code: ErrorCode;
  /** Ends its message: what the user can do. */
  readonly advice: string;
}

interface TransferRetrying {
  /** Name of the work for messages, such as `model.safetensors`. */
  readonly what: string;
  readonly policy: TransferPolicy;
  readonly signal?: AbortSignal | undefined;
  /** Called with a sentence before each wait. */
  readonly note?: ((text: string) => void) | undefined;
}

/** `withRetries` for transfers. @throws TrawlError with the policy's code after the last attempt; CANCELLED; other errors of `work`. */
export function withTransferRetries<T>(
  work: (progressed: () => void) => Promise<T>,
  { what, policy, signal, note }: TransferRetrying,
): Promise<T> {
  return withRetries(work, {
    policy,
    signal,
    onWait: (reason, ms) => note?.(`${what}: ${reason}; retrying in ${(ms / 1000).toFixed(1)} s`),
    givenUp: (failure, attempts, why) =>
      new TrawlError(policy.code, `${what}: ${failure.message}; ${why}. ${policy.advice}`, {
        details: { what, attempts },
        cause: failure,
      }),
  });
}

/**
 * The pause that a reply asks for, in milliseconds: `retry-after-ms`, else `Retry-After` in seconds or as a date (RFC 9110, section
 * 10.2.3). Undefined if the reply names none, or none that can be read.
 */
export function retryAfterMs(headers: Pick<Headers, 'get'>, now = Date.now()): number | undefined {
  const milliseconds = headers.get('retry-after-ms')?.trim();
  if (milliseconds !== undefined && /^\d{1,9}(\.\d+)?$/.test(milliseconds)) return Number(milliseconds);
  const text = headers.get('retry-after')?.trim();
  if (text === undefined) return undefined;
  if (/^\d{1,9}(\.\d+)?$/.test(text)) return Number(text) * 1000;
  // Date.parse also accepts texts that are not HTTP dates, such as "-1".
  const date = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

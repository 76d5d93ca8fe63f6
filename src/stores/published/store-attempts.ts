import { setTimeout as pause } from 'node:timers/promises';
import { throwIfCancelled, untilAborted } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';

/** Pauses before further attempts, in milliseconds. Their number bounds the attempts. */
const PAUSES_MS = [100, 400, 1_000];

/** What a failed attempt means for the caller. */
export interface FailedAttempt {
  readonly error: TrawlError;
  readonly isWorthRetrying: boolean;
}

/**
 * The reply of a store. Calls again, after a pause, while another attempt may help.
 *
 * @param attempt makes the call and checks its reply; a TrawlError that it throws is final.
 * @param failed reads anything else that it throws.
 * @throws TrawlError CANCELLED as soon as the signal is aborted, also in a pause; the error of the last failed attempt.
 */
export async function storeAttempts<Reply>(
  attempt: () => Promise<Reply>,
  failed: (thrown: unknown) => FailedAttempt,
  signal: AbortSignal | undefined,
): Promise<Reply> {
  for (let failures = 0; ; failures++) {
    throwIfCancelled(signal);
    try {
      return await untilAborted(attempt(), signal);
    } catch (thrown) {
      if (thrown instanceof TrawlError) throw thrown;
      const { error, isWorthRetrying } = failed(thrown);
      if (!isWorthRetrying || failures >= PAUSES_MS.length) throw error;
    }
    // An abort ends the pause; the loop throws for it.
    await pause(PAUSES_MS[failures], undefined, { signal }).catch(() => undefined);
  }
}

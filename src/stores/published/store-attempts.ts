import { untilAborted } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { type RetryPolicy, TransientFailure, withRetries } from '../../base/net/retries.ts';

const POLICY: RetryPolicy = { attempts: 4, firstWaitMs: 200, maxWaitMs: 1_000 };

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
export function storeAttempts<Reply>(
  attempt: () => Promise<Reply>,
  failed: (thrown: unknown) => FailedAttempt,
  signal: AbortSignal | undefined,
): Promise<Reply> {
  const work = async (): Promise<Reply> => {
    try {
      return await untilAborted(attempt(), signal);
    } catch (thrown) {
      if (thrown instanceof TrawlError) throw thrown;
      const { error, isWorthRetrying } = failed(thrown);
      throw isWorthRetrying ? new TransientFailure(error.message, { cause: error }) : error;
    }
  };
  return withRetries(work, { policy: POLICY, signal, givenUp: ({ cause }) => cause as TrawlError });
}

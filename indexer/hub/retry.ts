import { TrawlError } from '../../src/base/errors.ts';
import { type Retrying, type RetryLimits, withRetries } from '../../src/base/net/transfer-retries.ts';

export const RETRY_LIMITS: RetryLimits = {
  attempts: 6,
  firstDelayMs: 1000,
  maxDelayMs: 30_000,
  maxRetryAfterMs: 300_000,
};

/**
 * `withRetries` for requests to the hub.
 *
 * @throws TrawlError HUB_UNREACHABLE after the last attempt; CANCELLED; any other error of `work`.
 */
export function withHubRetries<T>(
  work: (progressed: () => void) => Promise<T>,
  retrying: Omit<Retrying, 'givenUp'>,
): Promise<T> {
  const { what } = retrying;
  const givenUp: Retrying['givenUp'] = (failure, attempts, why) =>
    new TrawlError(
      'HUB_UNREACHABLE',
      `${what}: ${failure.message}; ${why}. The received data is kept: run the same command again later to resume. If the ` +
        'error persists, check the network and HF_ENDPOINT.',
      { details: { what, attempts }, cause: failure },
    );
  return withRetries(work, { ...retrying, givenUp });
}

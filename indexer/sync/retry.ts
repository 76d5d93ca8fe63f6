import { TrawlError } from '../../src/base/errors.ts';
import { type Retrying, type RetryLimits, withRetries } from '../../src/base/net/transfer-retries.ts';

export const RETRY_LIMITS: RetryLimits = {
  attempts: 6,
  firstDelayMs: 500,
  maxDelayMs: 20_000,
  maxRetryAfterMs: 300_000,
};

/**
 * `withRetries` for requests to the source of a copy.
 *
 * @throws TrawlError SOURCE_UNREACHABLE after the last attempt; CANCELLED; other errors of `work`.
 */
export function withSourceRetries<T>(
  work: (progressed: () => void) => Promise<T>,
  retrying: Omit<Retrying, 'givenUp'>,
): Promise<T> {
  const { what } = retrying;
  const givenUp: Retrying['givenUp'] = (failure, attempts, why) =>
    new TrawlError(
      'SOURCE_UNREACHABLE',
      `${what}: ${failure.message}; ${why}. What was copied is kept: run the same command again.`,
      { details: { what, attempts }, cause: failure },
    );
  return withRetries(work, { ...retrying, givenUp });
}

import { untilAborted } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { type RetryPolicy, TransientFailure, withRetries } from '../../base/net/retries.ts';

const POLICY: RetryPolicy = { attempts: 4, firstWaitMs: 200, maxWaitMs: 1_000 };
/** Seconds after which a failed request may be sent again. */
const RETRY_AFTER_S = 5;

interface FailureFacts {
  readonly missing?: 'collection' | 'database' | 'index';
  /** Whether the store rejects the credentials or the user's privileges. */
  readonly refused?: boolean;
  /** Whether another attempt may succeed at once. Not after a time-out, which would only double the wait. */
  readonly retry?: boolean;
  /** What to do about it; undefined: check that the store runs. */
  readonly advice?: string;
}

/** A failed call of a store. Its message is the store's reason, never the request. */
export class StoreFailure extends Error {
  readonly facts: FailureFacts;

  constructor(reason: string, facts: FailureFacts = {}) {
    super(reason);
    this.facts = facts;
  }
}

export interface CalledStore {
  readonly store: 'Milvus' | 'OpenSearch';
  readonly server: string;
  readonly refusalAdvice: string;
}

interface StoreCall<Reply> {
  /** What the call does, after `could not`. */
  readonly doing: string;
  /** Calls the store once and checks the reply. A TrawlError is final. */
  readonly attempt: () => Promise<Reply>;
  readonly failureOf: (thrown: unknown) => StoreFailure;
  /** Whether the call reads published rows. Where they are missing now, they may be back in a moment. */
  readonly readsRows: boolean;
  readonly signal: AbortSignal | undefined;
}

/**
 * Calls a store, and calls it again after a pause while another attempt may help.
 *
 * @throws TrawlError CANCELLED as soon as the signal is aborted, also in a pause; STORE_FAILED, STORE_REFUSED, or INDEX_NOT_FOUND, whose
 * cause is the StoreFailure.
 */
export function callStore<Reply>(
  called: CalledStore,
  { doing, attempt, failureOf, readsRows, signal }: StoreCall<Reply>,
): Promise<Reply> {
  const work = async (): Promise<Reply> => {
    try {
      return await untilAborted(attempt(), signal);
    } catch (thrown) {
      if (thrown instanceof TrawlError) throw thrown;
      const failure = failureOf(thrown);
      if (failure.facts.missing !== undefined && !readsRows) throw missingError(called, failure);
      const error = storeError(called, doing, failure);
      throw failure.facts.retry ? new TransientFailure(error.message, { cause: error }) : error;
    }
  };
  return withRetries(work, { policy: POLICY, signal, givenUp: ({ cause }) => cause as TrawlError });
}

export function storeError(
  { store, server, refusalAdvice }: CalledStore,
  doing: string,
  failure: StoreFailure,
): TrawlError {
  const reason = failure.message.replaceAll(/\s+/g, ' ').slice(0, 300);
  if (failure.facts.refused) {
    return new TrawlError('STORE_REFUSED', `${store} at ${server} refuses to ${doing}: ${reason}. ${refusalAdvice}`);
  }
  const advice = failure.facts.advice ?? 'Check that it runs and is reachable; the request can be sent again.';
  return new TrawlError('STORE_FAILED', `${store} at ${server} could not ${doing}: ${reason}. ${advice}`, {
    details: { retryAfterS: RETRY_AFTER_S },
  });
}

export function missingError({ store, server }: CalledStore, failure: StoreFailure): TrawlError {
  const { missing } = failure.facts;
  const advice =
    missing === 'database'
      ? `Create it in ${store}, or correct the address; without a database in the address, it is \`default\`.`
      : 'Publish an index with `trawl publish`, or correct the address.';
  return new TrawlError(
    'INDEX_NOT_FOUND',
    `${store} at ${server} has no such ${missing} (${failure.message}). ${advice}`,
    { cause: failure },
  );
}

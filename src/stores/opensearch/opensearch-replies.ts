import { OpenSearchFailure } from './opensearch-failure.ts';

// biome-ignore lint/suspicious/noExplicitAny: replies have as many forms as calls; each is read where it is made.
export type Body = any;

export interface OpenSearchHit {
  readonly _source?: Readonly<Record<string, unknown>>;
  /** Doc values. */
  readonly fields?: Readonly<Record<string, readonly unknown[]>>;
  readonly sort?: readonly unknown[];
}

export interface OpenSearchReply {
  readonly hits: readonly OpenSearchHit[];
  /** Documents that the query finds, or the limit of the count; 0 if they were not counted. */
  readonly total: number;
}

/**
 * @param counted up to which number hits are counted, or whether they are.
 * @throws OpenSearchFailure for a search that failed, or whose hits may be incomplete.
 */
export function checkComplete(response: Body, counted: boolean | number): void {
  if (response.error !== undefined) throw OpenSearchFailure.ofStatus(response.status ?? 0, response.error);
  const { timed_out, terminated_early, _shards, hits } = response;
  if (timed_out !== false) throw OpenSearchFailure.incomplete('the search ran out of time');
  if (terminated_early === true) throw OpenSearchFailure.incomplete('the search ended before its end');
  const { total, successful, skipped = 0, failed } = _shards ?? {};
  if (total === undefined || total < 1 || successful !== total || failed !== 0 || skipped !== 0) {
    throw OpenSearchFailure.incomplete(
      `of ${total} shards, ${successful} were searched, ${failed} failed and ${skipped} were skipped`,
    );
  }
  const { value, relation } = hits?.total ?? {};
  const isCounted =
    counted === false || relation === 'eq' || (relation === 'gte' && typeof counted === 'number' && value >= counted);
  if (!isCounted || !Array.isArray(hits?.hits)) {
    throw OpenSearchFailure.incomplete('its answer has no exact number of hits');
  }
}

/** The reply to one search. */
export function replyOf({ hits }: Body): OpenSearchReply {
  return { hits: hits.hits, total: hits.total?.value ?? 0 };
}

import type { IndexDefinition } from '../../../index/document-store/index-definition.ts';
import type { WriteItem, Written } from '../../../index/document-store/operations.ts';

/** What a reply says of an index, which may have been removed meanwhile. */
export type ReplyFacts = Pick<IndexDefinition, 'uuid' | 'settings'> | undefined;

/** The status of what an operation did. */
export function statusOf({ result }: Written): number {
  return { created: 201, updated: 200, deleted: 200, not_found: 404 }[result];
}

/** The reply to a write of one document. */
export function writtenObject({ index, id }: WriteItem, written: Written, facts: ReplyFacts, forced: boolean): object {
  return {
    _index: index,
    _id: id,
    _version: written.version,
    result: written.result,
    ...(forced ? { forced_refresh: true } : {}),
    _shards: shardsObject(facts),
    _seq_no: written.seqNo,
    _primary_term: 1,
  };
}

/** An item of the reply to a `_bulk` request. */
export function bulkItem(item: WriteItem, facts: ReplyFacts, forced: boolean): object {
  const { action, index, id, outcome } = item;
  if (!('failure' in outcome)) {
    return { [action]: { ...writtenObject(item, outcome, facts, forced), status: statusOf(outcome) } };
  }
  const { status, ...error } = outcome.failure;
  return { [action]: { _index: index, _id: id, status, error: { ...error, ...placeOf(item, facts) } } };
}

/** What an error of a document says of its place. */
export function placeOf({ index, outcome }: WriteItem, facts: ReplyFacts): object {
  const isConflict = 'failure' in outcome && outcome.failure.status === 409;
  return isConflict && facts !== undefined ? { index_uuid: facts.uuid, shard: '0', index } : {};
}

/** An index is one shard, and has no copies but those that its settings name. */
export function shardsObject(facts: ReplyFacts): object {
  return { total: 1 + (facts?.settings.replicas ?? 0), successful: 1, failed: 0 };
}

import { documentId } from './document-id.ts';
import { floatText } from './float-text.ts';
import type { SearchResult } from './run-search.ts';
import type { SearchRequest } from './search-request.ts';
import { sourceOf } from './source-filter.ts';

/** The JSON text of a search's reply, a piece for each hit. */
export function* searchReply(
  { hits, indexes, best, total }: SearchResult,
  { size, source, trackTotal, totalAsInteger }: SearchRequest,
  { took, more = '' }: { readonly took: number; readonly more?: string },
): Generator<string> {
  // Elasticsearch says so only where it counts everything and returns nothing.
  const early = size === 0 && trackTotal === Number.POSITIVE_INFINITY ? ',"terminated_early":false' : '';
  yield `{"took":${took},"timed_out":false${early},"_shards":${shardsJson(indexes)},"hits":{`;
  if (trackTotal !== false) yield `"total":${totalJson(total, trackTotal, totalAsInteger)},`;
  else if (totalAsInteger) yield '"total":-1,';
  yield `"max_score":${best === null || size === 0 ? 'null' : floatText(best)},"hits":[`;
  for (const [i, { index, row, score, document }] of hits.entries()) {
    const chosen = sourceOf(document, source);
    const sourceJson = chosen === undefined ? '' : `,"_source":${chosen}`;
    const id = JSON.stringify(documentId(document, row));
    yield `${i === 0 ? '' : ','}{"_index":${JSON.stringify(index)},"_id":${id},"_score":${floatText(score)}${sourceJson}}`;
  }
  yield `]}${more}}`;
}

/** Each index is one shard. */
export function shardsJson(indexes: number): string {
  return `{"total":${indexes},"successful":${indexes},"skipped":0,"failed":0}`;
}

function totalJson(total: number, limit: number, asInteger: boolean): string {
  if (asInteger) return String(total);
  const isExact = total <= limit;
  return `{"value":${isExact ? total : limit},"relation":"${isExact ? 'eq' : 'gte'}"}`;
}

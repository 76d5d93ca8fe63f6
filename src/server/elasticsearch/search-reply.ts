import { documentFields } from '../../index/passages/document-fields.ts';
import { hasOtherHits } from '../../search/calls/query-outcome.ts';
import { fieldsJson } from './field-values.ts';
import { highlightJson } from './highlight/highlight-passage.ts';
import { floatText } from './java-numbers.ts';
import type { IndexHit, SearchResult } from './run-search.ts';
import type { SearchRequest } from './search-request.ts';
import { sortValuesJson } from './sort-order.ts';
import { sourceJson } from './source-filter.ts';

/**
 * The JSON text of a search's reply, a piece for each hit.
 *
 * @param took milliseconds.
 * @param more the text of further members, after a comma.
 */
export function* searchReply(
  { hits, indexes, best, total, perturbed }: SearchResult,
  search: SearchRequest,
  took: number,
  more = '',
): Generator<string> {
  const { size, trackTotal, totalAsInteger, sort, trackScores } = search;
  // Elasticsearch says so only where it counts everything and returns nothing.
  const early = size === 0 && trackTotal === Number.POSITIVE_INFINITY ? ',"terminated_early":false' : '';
  yield `{"took":${Math.round(took)},"timed_out":false${early},"_shards":${shardsJson(indexes.length)},"hits":{`;
  if (totalAsInteger) yield `"total":${trackTotal === false ? -1 : total},`;
  else if (trackTotal !== false) {
    // If the server changed hits on purpose, the total of the search is only the least number.
    const isExact = total <= trackTotal && !hasOtherHits(perturbed);
    yield `"total":{"value":${Math.min(total, trackTotal)},"relation":"${isExact ? 'eq' : 'gte'}"},`;
  }
  const hasBest = best !== undefined && size > 0 && (sort === undefined || trackScores);
  yield `"max_score":${hasBest ? floatText(best) : 'null'},"hits":[`;
  for (const [i, hit] of hits.entries()) yield `${i === 0 ? '' : ','}${hitJson(hit, search)}`;
  yield `]}${more}}`;
}

function hitJson(hit: IndexHit, { source, sort, trackScores, fields, highlight }: SearchRequest): string {
  const { row, score, document, orderValues, index } = hit;
  const { info, integers, query, texts } = index;
  const isScored = sort === undefined || trackScores || sort.some(({ field }) => field === '_score');
  const parts = [
    `"_index":${JSON.stringify(info.index)}`,
    `"_id":${JSON.stringify(documentId(document, row))}`,
    `"_score":${isScored ? floatText(score) : 'null'}`,
  ];
  const add = (name: string, json: string | undefined): void => {
    if (json !== undefined) parts.push(`"${name}":${json}`);
  };
  add('_source', sourceJson(document, source));
  if (fields.length > 0) add('fields', fieldsJson(document, info, integers, fields));
  if (texts !== undefined) add('highlight', highlightJson(hit, info, { query, texts, fields: highlight }));
  if (sort !== undefined && orderValues !== undefined) add('sort', sortValuesJson(orderValues, sort, info, integers));
  return `{${parts.join(',')}}`;
}

/** Each index is one shard. */
export function shardsJson(indexes: number): string {
  return `{"total":${indexes},"successful":${indexes},"skipped":0,"failed":0}`;
}

/** `_id` of a passage: its id as text, or its row for a passage without one, as `row 7`. */
export function documentId(document: string, row: number): string {
  return documentFields(document).id ?? `row ${row}`;
}

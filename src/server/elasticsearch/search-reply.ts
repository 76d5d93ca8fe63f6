import { hasOtherHits } from '../../search/calls/query-outcome.ts';
import { documentId } from './document-id.ts';
import { fieldsJson } from './field-values.ts';
import { highlightJson } from './highlight/highlight-passage.ts';
import { floatText } from './java-numbers.ts';
import type { IndexHit, SearchResult } from './run-search.ts';
import type { SearchRequest } from './search-request.ts';
import { sortValuesJson } from './sort-order.ts';
import { sourceOf } from './source-filter.ts';

interface ReplyFacts {
  readonly took: number;
  /** The text of further members, after a comma. */
  readonly more?: string;
  /** The columns of an index whose numbers have no fraction, such as those that it was made with as `long`. */
  readonly integersOf: (index: string) => ReadonlySet<string>;
}

/** The JSON text of a search's reply, a piece for each hit. */
export function* searchReply(
  { hits, indexes, best, total, perturbed }: SearchResult,
  search: SearchRequest,
  { took, more = '', integersOf }: ReplyFacts,
): Generator<string> {
  const { size, trackTotal, totalAsInteger, sort, trackScores } = search;
  // Elasticsearch says so only where it counts everything and returns nothing.
  const early = size === 0 && trackTotal === Number.POSITIVE_INFINITY ? ',"terminated_early":false' : '';
  yield `{"took":${took},"timed_out":false${early},"_shards":${shardsJson(indexes)},"hits":{`;
  if (trackTotal !== false)
    yield `"total":${totalJson(total, trackTotal, { asInteger: totalAsInteger, isKnown: !hasOtherHits(perturbed) })},`;
  else if (totalAsInteger) yield '"total":-1,';
  const hasBest = best !== null && size > 0 && (sort === undefined || trackScores);
  yield `"max_score":${hasBest ? floatText(best) : 'null'},"hits":[`;
  for (const [i, hit] of hits.entries()) {
    yield `${i === 0 ? '' : ','}${hitJson(hit, search, integersOf(hit.index.info.index))}`;
  }
  yield `]}${more}}`;
}

function hitJson(
  hit: IndexHit,
  { source, sort, trackScores, fields, highlight }: SearchRequest,
  integers: ReadonlySet<string>,
): string {
  const { row, score, document, orderValues, index } = hit;
  const { info, query, texts } = index;
  const isScored = sort === undefined || trackScores || sort.some(({ field }) => field === '_score');
  const parts = [
    `"_index":${JSON.stringify(info.index)}`,
    `"_id":${JSON.stringify(documentId(document, row))}`,
    `"_score":${isScored ? floatText(score) : 'null'}`,
  ];
  const add = (name: string, json: string | undefined): void => {
    if (json !== undefined) parts.push(`"${name}":${json}`);
  };
  add('_source', sourceOf(document, source));
  if (fields.length > 0) add('fields', fieldsJson(document, { ...info, integers }, fields));
  if (texts !== undefined) add('highlight', highlightJson(hit, info, { query, texts, fields: highlight }));
  if (sort !== undefined && orderValues !== undefined)
    add('sort', sortValuesJson(orderValues, sort, { ...info, integers }));
  return `{${parts.join(',')}}`;
}

/** Each index is one shard. */
export function shardsJson(indexes: number): string {
  return `{"total":${indexes},"successful":${indexes},"skipped":0,"failed":0}`;
}

/** `isKnown`: false if the hits are not those of the search, of which the total then is only the least number. */
function totalJson(
  total: number,
  limit: number,
  { asInteger, isKnown }: { readonly asInteger: boolean; readonly isKnown: boolean },
): string {
  if (asInteger) return String(total);
  const isExact = isKnown && total <= limit;
  return `{"value":${Math.min(total, limit)},"relation":"${isExact ? 'eq' : 'gte'}"}`;
}

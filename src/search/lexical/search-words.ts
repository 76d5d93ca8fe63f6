import { TrawlError } from '../../base/errors.ts';
import type { Bm25Ranking, FieldRanking } from '../../engine/lexical/bm25.ts';
import type { LexicalFields } from '../../engine/lexical/lexical-fields.ts';
import type { LexicalResult } from '../../engine/lexical/lexical-index.ts';
import { bestFields } from '../../engine/lexical/lexical-query.ts';
import type { LexicalField } from '../../engine/lexical/lexical-settings.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';

export interface WordSearch {
  /** Name of the index, for messages. */
  readonly index: string;
  readonly texts: readonly string[];
  readonly k: number;
  readonly ranking: Bm25Ranking;
  /** The rows that may be found. Default: all. */
  readonly filter?: RowBitmap;
  readonly signal?: AbortSignal;
}

/**
 * Searches the contents of the passages, or, in an index with title and text apart, both fields as Elasticsearch's multi_match
 * does: the best field of a passage gives its score.
 *
 * @throws TrawlError as `checkFieldRanking`.
 */
export function searchWords(lexical: LexicalFields, search: WordSearch): Promise<LexicalResult> {
  const { texts, k, ranking, filter, signal } = search;
  checkFieldRanking(search.index, ranking, [...lexical.indexes.keys()]);
  const { weights: _, tieBreaker: __, ...parameters } = ranking;
  const request = {
    k,
    parameters,
    filter,
    signal,
  };
  const contents = lexical.indexes.get('contents');
  if (contents !== undefined) return contents.search({ ...request, queries: texts });
  const fields = [...lexical.indexes.keys()];
  const queries = texts.map((text) => bestFields(text, fields, ranking));
  return lexical.search({ ...request, queries });
}

/**
 * Checks whether an index with these fields can be searched with these weights and this tie breaker.
 *
 * @throws TrawlError NOT_SUPPORTED for weights of fields that the index does not have apart; INVALID_REQUEST if all weights are 0.
 */
export function checkFieldRanking(
  index: string,
  { weights, tieBreaker }: FieldRanking,
  fields: readonly LexicalField[],
): void {
  if (fields.includes('contents')) {
    if (weights !== undefined || tieBreaker !== undefined) throw noFields(index);
    return;
  }
  if (weights === undefined) return;
  const unknown = Object.keys(weights).find((field) => !fields.includes(field as LexicalField));
  if (unknown !== undefined) {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `The index ${index} has the fields ${fields.join(' and ')}, but a weight was given for ${JSON.stringify(unknown)}.`,
    );
  }
  if (fields.every((field) => weights[field] === 0))
    throw new TrawlError('INVALID_REQUEST', 'The weights of all fields are 0. At least one must be larger.');
}

function noFields(index: string): TrawlError {
  return new TrawlError(
    'NOT_SUPPORTED',
    `The index ${index} has title and text as one field, contents, so weights of fields and a tie breaker cannot be used. Make ` +
      'its inverted indexes again with trawl optimize INDEX --bm25 --bm25-fields title,text.',
  );
}

import { TrawlError } from '../../src/base/errors.ts';
import { defined, isObject } from '../../src/base/objects.ts';
import { QUERY_TEMPLATES } from '../../src/encoder/identity/model-identity.ts';
import { type EncoderInput, TRUNCATE_SIDES, TRUNCATIONS, type Truncation } from '../../src/encoder/text-encoder.ts';
import { filterOf } from '../../src/engine/filter/filter-json.ts';
import { hasOtherHits } from '../../src/search/calls/query-outcome.ts';
import type { RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import { hybridFault } from '../../src/search/hybrid/hybrid-settings.ts';
import { BM25_ORDERS, SEARCH_MODES } from '../../src/search/search-mode.ts';
import type { AnswerFacts } from '../../src/server/recording/record-line.ts';
import type { RecordedQuery } from '../records/recorded-query.ts';
import type { KeyedCall } from './stored-answer.ts';

export type RecordedCall = Exclude<ReturnType<typeof recordedCall>, Unusable>;

/**
 * Why a record cannot be replayed:
 * - `error`: the query failed;
 * - `group`: several indexes were searched as one;
 * - `view`: a view limited the search, which the record names but does not define;
 * - `queryTree`: a search of Elasticsearch's interface, whose query is more than its text;
 * - `selection`: the request left hits out or merged lists, so the record does not have what the search found;
 * - `perturbed`: the server left out gold passages or mixed in distractors, so the hits are not the search's own;
 * - `rerankFailed`: the reranker failed, and the hits are the search's own;
 * - `unknown`: a setting has a value that this program does not know.
 */
export const UNUSABLE = [
  'error',
  'group',
  'view',
  'queryTree',
  'selection',
  'perturbed',
  'rerankFailed',
  'unknown',
] as const;
export type Unusable = (typeof UNUSABLE)[number];

/** The call of a record, or why it cannot be replayed. `text`: its line. */
export function recordedCall(query: RecordedQuery, text: string) {
  if (query.error !== undefined) return 'error' as const;
  if (query.indexes !== undefined || query.failedIndexes !== undefined) return 'group' as const;
  if (query.view !== undefined) return 'view' as const;
  if (query.dialect === 'elasticsearch') return 'queryTree' as const;
  if (hasOtherHits(query.perturbed)) return 'perturbed' as const;
  const fields = JSON.parse(text) as Readonly<Record<string, unknown>>;
  if (fields.selection !== undefined) return 'selection' as const;
  const facts = factsOf(fields.answer);
  if (facts?.rerank === null) return 'rerankFailed' as const;
  const { k, mode, template, truncate, cut = 'nothing', rerank, hybrid } = query;
  const { bm25, bm25Order } = fields;
  const known =
    k >= 1 &&
    isOneOf(mode, SEARCH_MODES) &&
    isOneOf(template, QUERY_TEMPLATES) &&
    isOneOf(truncate, TRUNCATE_SIDES) &&
    isOneOf(bm25Order, BM25_ORDERS) &&
    isOneOf(cut, TRUNCATIONS) &&
    (bm25 === undefined || isObject(bm25)) &&
    (rerank === undefined || (isObject(rerank) && Number.isSafeInteger(rerank.depth))) &&
    (hybrid === undefined || (isObject(hybrid) && hybridFault(hybrid) === undefined));
  const filter = query.filter === undefined ? undefined : knownFilter(query.filter);
  if (!known || filter === null) return 'unknown' as const;
  const call = defined({ k, mode, template, truncate, bm25, bm25Order, rerank, hybrid, filter }) as KeyedCall;
  const { question, history } = query;
  const isPlain = question === undefined && history === undefined;
  const input: EncoderInput = isPlain ? query.query : { question: question ?? '', query: query.query, history };
  /** `facts`: null for a line of a server that did not write them. */
  return { input, call, cut: cut as Truncation, facts };
}

function isOneOf(value: unknown, known: readonly string[]): boolean {
  return value === undefined || (typeof value === 'string' && known.includes(value));
}

function knownFilter(json: unknown): RetrieveCall['filter'] | null {
  try {
    return filterOf(json);
  } catch (error) {
    if (error instanceof TrawlError) return null;
    throw error;
  }
}

function factsOf(value: unknown): AnswerFacts | null {
  if (!isObject(value) || (value.tokens !== null && !Number.isSafeInteger(value.tokens))) return null;
  return value as unknown as AnswerFacts;
}

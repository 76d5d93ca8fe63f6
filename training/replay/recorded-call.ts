import { TrawlError } from '../../src/base/errors.ts';
import { isObject } from '../../src/base/objects.ts';
import { QUERY_TEMPLATES } from '../../src/encoder/identity/model-identity.ts';
import { type EncoderInput, TRUNCATE_SIDES, TRUNCATIONS, type Truncation } from '../../src/encoder/text-encoder.ts';
import { filterOf } from '../../src/engine/filter/filter-json.ts';
import { hasOtherHits } from '../../src/search/calls/query-outcome.ts';
import type { RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import { hybridFault } from '../../src/search/hybrid/hybrid-settings.ts';
import { BM25_ORDERS, SEARCH_MODES } from '../../src/search/search-mode.ts';
import type { AnswerFacts } from '../../src/server/recording/answer-facts.ts';
import type { RecordedQuery } from '../records/recorded-query.ts';
import type { KeyedCall } from './answer-key.ts';

/** A recorded query as the retriever was asked it. */
export interface RecordedCall {
  readonly input: EncoderInput;
  readonly call: KeyedCall;
  readonly cut: Truncation;
  /** Null for a line of a server that did not write them. */
  readonly facts: AnswerFacts | null;
}

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

type Fields = Readonly<Record<string, unknown>>;

/** The call of a record, or why it cannot be replayed. `text`: its line. */
export function recordedCall(query: RecordedQuery, text: string): RecordedCall | Unusable {
  if (query.error !== undefined) return 'error';
  if (query.indexes !== undefined || query.failedIndexes !== undefined) return 'group';
  if (query.view !== undefined) return 'view';
  if (query.dialect === 'elasticsearch') return 'queryTree';
  if (hasOtherHits(query.perturbed)) return 'perturbed';
  const fields = JSON.parse(text) as Fields;
  if (fields.selection !== undefined) return 'selection';
  const facts = factsOf(fields.answer);
  if (facts?.rerank === null) return 'rerankFailed';
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
  if (!known || filter === null) return 'unknown';
  const settings = { mode, template, truncate, bm25, bm25Order, rerank, hybrid, filter };
  const given = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
  return {
    input: inputOfRecord(query),
    call: { k, ...(given as Omit<KeyedCall, 'k'>) },
    cut: cut as Truncation,
    facts,
  };
}

/** The query as it was sent: a plain text, or with its question and history. */
function inputOfRecord({ query, question, history }: RecordedQuery): EncoderInput {
  if (question === undefined && history === undefined) return query;
  return { question: question ?? '', query, history };
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

import type { QueryTemplate } from '../../encoder/identity/model-identity.ts';
import { contextOf, type EncoderInput, type QuestionAndQuery } from '../../encoder/text-encoder.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { Hit, QueryAnswer } from '../../search/calls/query-outcome.ts';
import type { HybridPlaces } from '../../search/hybrid/hybrid-fusion.ts';
import type { RecordedOpening, RecordedSearch } from './recorded-search.ts';

/**
 * The lines of a search, one per query, each with its line end. docs/recording.md describes the fields; `training/records/recorded-query.ts`
 * reads them.
 */
export function* recordLines(time: string, request: object, search: RecordedSearch): Generator<string> {
  const { queries, k, mode, rerank, truncate, filter, hybrid, bm25, bm25Order, selection, origins, outcomes } = search;
  for (const [place, input] of queries.entries()) {
    const outcome = outcomes[place]!;
    const { question, ...origin } = origins?.[place] ?? {};
    const head = {
      time,
      ...request,
      place,
      ...origin,
      ...queryParts(input, question, search.template),
      k,
      mode,
      hybrid: mode === 'hybrid' ? hybrid : undefined,
      rerank,
      truncate,
      cut: outcome.ok && outcome.cut !== 'nothing' ? outcome.cut : undefined,
      filter,
      bm25,
      bm25Order,
      selection,
    };
    if (!outcome.ok) {
      yield `${JSON.stringify({ ...head, error: outcome.error.code })}\n`;
      continue;
    }
    // Ids as JSON text: parsing would round an integer beyond 2^53.
    const ids = outcome.hits.map(({ document }) => documentFields(document).idJson ?? 'null').join(',');
    const { hits, failedIndexes } = outcome;
    const found = {
      answer: answerFacts(input, outcome),
      ...hitRows(hits),
      scores: hits.map(({ score }) => score),
      failedIndexes: failedIndexes?.map(({ index }) => index),
      perturbed: outcome.perturbed,
    };
    yield `${JSON.stringify({ ...head, ...found }).slice(0, -1)},"ids":[${ids}]}\n`;
  }
}

/** The rows of the hits; in a group, with the index of each. */
function hitRows(hits: readonly Hit[]): object {
  const sources = hits.flatMap(({ source }) => source ?? []);
  if (sources.length === 0) return { rows: hits.map(({ row }) => row) };
  return { indexes: sources.map(({ index }) => index), rows: sources.map(({ row }) => row) };
}

/**
 * The parts of a query and its template. A question that the query was sent without is written with a template that does not have it, so
 * that the line says what was searched for.
 */
function queryParts(input: EncoderInput, unsearched: string | undefined, template: QueryTemplate | undefined): object {
  const parts: Partial<QuestionAndQuery> = typeof input === 'string' ? { query: input } : input;
  const { question, query, history } = parts;
  if (unsearched === undefined || (question ?? '') !== '') return { question, query, history, template };
  const searched = template?.includes('history') === true ? 'history-query' : 'query';
  return { question: unsearched, query, history, template: searched };
}

/**
 * The parts of an answer beside its hits, which the record keeps so that a replayed reply equals the recorded one. Lists have one entry per
 * hit, in the order of the hits.
 */
export interface AnswerFacts extends Pick<QueryAnswer, 'tokens' | 'scales'> {
  /** The embedded text of a query with a question or history; without them it follows from the query and the prefix of the model. */
  readonly text?: string;
  /** As in `QueryCertificate`. */
  readonly rescored: number | null;
  readonly depth?: number;
  readonly places?: readonly HybridPlaces[];
  readonly firstStage?: readonly { readonly rank: number; readonly score: number }[];
  /** Null if the reranker failed on the query, so that the hits keep the order of the search. */
  readonly rerank?: { readonly model: string; readonly passages: number; readonly truncated: number } | null;
}

function answerFacts(input: EncoderInput, answer: QueryAnswer): AnswerFacts {
  const { tokens, text, scales, rerank, hits } = answer;
  const { rescored, depth } = answer.certificate;
  const places = hits.flatMap((hit) => hit.places ?? []);
  const firstStage = hits.flatMap((hit) => hit.firstStage ?? []);
  return {
    tokens,
    text: contextOf(input).length === 0 ? undefined : text,
    rescored,
    depth,
    places: places.length === 0 ? undefined : places,
    scales,
    firstStage: firstStage.length === 0 ? undefined : firstStage,
    rerank:
      rerank && (rerank.ok ? { model: rerank.model, passages: rerank.passages, truncated: rerank.truncated } : null),
  };
}

/** The lines of a request's openings, each with its line end. `training/records/recorded-query.ts` reads them. */
export function* openingLines(time: string, request: object, openings: readonly RecordedOpening[]): Generator<string> {
  for (const [place, { opened, passages, origin = {} }] of openings.entries()) {
    const isGroup = passages.some(({ index }) => index !== undefined);
    const line = {
      time,
      ...request,
      place,
      ...origin,
      opened,
      indexes: isGroup ? passages.map(({ index }) => index) : undefined,
      rows: passages.map(({ row }) => row),
    };
    const ids = passages.map(({ idJson }) => idJson ?? 'null').join(',');
    yield `${JSON.stringify(line).slice(0, -1)},"ids":[${ids}]}\n`;
  }
}

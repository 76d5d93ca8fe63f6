import type { QueryTemplate } from '../../encoder/identity/model-identity.ts';
import type { EncoderInput } from '../../encoder/text-encoder.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { Hit } from '../../search/calls/query-outcome.ts';
import { answerFacts } from './answer-facts.ts';
import type { RecordedSearch } from './recorded-search.ts';

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
      ...textsOf(input, question, search.template),
      k,
      mode,
      ...(mode === 'hybrid' && hybrid !== undefined ? { hybrid } : {}),
      rerank,
      truncate,
      ...(outcome.ok && outcome.cut !== 'nothing' ? { cut: outcome.cut } : {}),
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
      ...placesOf(hits),
      scores: hits.map(({ score }) => score),
      failedIndexes: failedIndexes?.map(({ index }) => index),
      perturbed: outcome.perturbed,
    };
    yield `${JSON.stringify({ ...head, ...found }).slice(0, -1)},"ids":[${ids}]}\n`;
  }
}

/** The rows of the hits; in a group, with the index of each. */
function placesOf(hits: readonly Hit[]): object {
  const sources = hits.flatMap(({ source }) => source ?? []);
  if (sources.length === 0) return { rows: hits.map(({ row }) => row) };
  return { indexes: sources.map(({ index }) => index), rows: sources.map(({ row }) => row) };
}

/**
 * The parts of a query and its template. A question that the query was sent without is written with a template that does not have it, so
 * that the line says what was searched for.
 */
function textsOf(input: EncoderInput, unsearched: string | undefined, template: QueryTemplate | undefined): object {
  const { question, query, history } =
    typeof input === 'string' ? { question: undefined, query: input, history: undefined } : input;
  const isUnsearched = unsearched !== undefined && (question ?? '') === '';
  const shown = isUnsearched ? unsearched : question;
  const used = isUnsearched ? (template?.includes('history') === true ? 'history-query' : 'query') : template;
  return {
    question: shown,
    query,
    history,
    template: used,
  };
}

import { applyTemplate, contextOf } from '../../encoder/text-encoder.ts';
import { filterKey } from '../../engine/filter/filter.ts';
import { LEXICAL_FIELDS } from '../../engine/lexical/lexical-settings.ts';
import type { RerankSettings } from '../calls/rerank-call.ts';
import type { RetrieveCall, RetrieveQuery } from '../calls/retrieve-call.ts';
import { isEmbedded } from '../embedded-query.ts';
import { hybridKey } from '../hybrid/hybrid-settings.ts';
import type { RetrieverInfo } from '../retriever-info.ts';

/** Equal keys have equal hits, given the retriever's index, encoder, prefix and analyser. */
export function queryKey(
  query: RetrieveQuery,
  {
    k,
    mode,
    bm25,
    bm25Order = 'row',
    filter,
    views = [],
    hybrid,
    rerank,
    template,
    documents = true,
    truncate: truncateOfCall = 'tail',
  }: RetrieveCall,
  { model }: RetrieverInfo,
): string {
  const passing = `${JSON.stringify([...new Set(views)].sort())} ${filter === undefined ? '' : filterKey(filter)}`;
  const lists = hybrid === undefined ? '' : hybridKey(hybrid);
  const firstStage = `${mode ?? ''} ${bm25 === undefined ? '' : parametersKey(bm25)} ${bm25Order} ${lists} ${passing}`;
  const ranking = `${firstStage} ${rerank === undefined ? '' : rerankKey(rerank, k)} ${documents}`;
  const { input: whole, truncate } = isEmbedded(query) ? query : { input: query, truncate: truncateOfCall };
  const input = applyTemplate(whole, template ?? model?.queryTemplate);
  const context = contextOf(input);
  // Both truncate sides shorten a plain text at its end.
  if (typeof input === 'string' || context.length === 0) {
    return `${ranking} text ${typeof input === 'string' ? input : input.query}`;
  }
  // Without a question the first history query takes its place, but truncation treats the two differently.
  const first = input.question.trim() === '' ? 'history' : 'question';
  const lengths = context.map(({ length }) => length).join();
  return `${ranking} ${truncate} ${first} ${lengths} ${context.join('')}${input.query}`;
}

/** The depth with which k hits are found: only among equal depths the hits for a smaller k are the first of those for a larger one. */
function rerankKey({ depth, model, allowFailure = false }: RerankSettings, k: number): string {
  return [Math.max(depth, k), allowFailure, model === undefined ? '' : JSON.stringify(model)].join();
}

/** Tells absent weights and an absent tie breaker from neutral ones, which an index without title and text apart refuses. */
function parametersKey({ k1, b, k1Factor, weights, tieBreaker }: NonNullable<RetrieveCall['bm25']>): string {
  const fields = weights === undefined ? [] : LEXICAL_FIELDS.map((field) => weights[field] ?? '');
  return [k1, b, k1Factor, tieBreaker ?? '', ...fields].join();
}

import { resolve } from 'node:path';
import { queryOf } from '../../evaluation/query-form.ts';
import type { OptionValues } from '../../src/base/options/option-spec.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { DEFAULT_RERANK_DEPTH } from '../../src/search/calls/retrieve-call.ts';
import type { SearchSourceInfo } from '../../src/search/retriever.ts';
import { ROW_FORMATS } from '../../training/mining/formats/formats.ts';
import type { QuerySource } from '../../training/mining/load-queries.ts';
import type { BatchSettings } from '../../training/mining/mine-batch.ts';
import { questionQueries } from '../../training/mining/question-queries.ts';
import type { RecordSource } from '../../training/mining/record-source.ts';
import type { ScoreLimits } from '../../training/mining/score-limits.ts';
import type { OpenSource, SERVED_INDEX_OPTION, SERVER_OPTIONS } from '../open/search-source.ts';
import type { QUERY_FORM_OPTION, QUERY_TEMPLATE_OPTION } from '../options/query-form.ts';
import { type RANKING_OPTIONS, rankingOf } from '../options/ranking-options.ts';
import { RERANK_OPTIONS } from '../options/rerank-options.ts';
import type { RETRIEVER_OPTIONS } from '../options/retriever-options.ts';
import type { VIEW_OPTIONS } from '../options/view-options.ts';
import { viewHash } from '../options/view-options.ts';
import type { MINE_OPTIONS } from './mine-options.ts';

const { 'rerank-depth': _, ...JUDGING } = RERANK_OPTIONS;
/** `trawl mine` reranks all candidates that no rule dropped, so it has no `--rerank-depth`. */
export const JUDGE_OPTIONS = JUDGING;

/** The values of all options of `trawl mine`. */
export type MineValues = OptionValues<
  typeof MINE_OPTIONS &
    typeof SERVER_OPTIONS &
    typeof RANKING_OPTIONS &
    typeof VIEW_OPTIONS &
    typeof JUDGE_OPTIONS &
    typeof RETRIEVER_OPTIONS & {
      readonly index: typeof SERVED_INDEX_OPTION;
      readonly 'query-form': typeof QUERY_FORM_OPTION;
      readonly 'query-template': typeof QUERY_TEMPLATE_OPTION;
    }
>;

/** What is mined: questions, or the records with the judgements of the questions. */
export function querySource(options: MineValues, records: RecordSource | undefined, generation: string): QuerySource {
  const others = { qrels: options.qrels, excluded: options['exclude-questions'] };
  const judged = questionQueries(options.queries);
  if (records === undefined) return { queries: judged, ...others };
  const limits = { split: options.split, generation: options['any-generation'] ? undefined : generation };
  return { queries: records.queries(limits), judged, ...others };
}

/** How a batch is searched, judged and sampled. */
export function batchSettings(
  options: MineValues,
  {
    info,
    limits,
    nearDuplicate,
  }: { readonly info: SearchSourceInfo; readonly limits: ScoreLimits; readonly nearDuplicate: number | null },
): BatchSettings {
  const { 'num-negatives': count, 'range-max': depth, 'query-form': form } = options;
  const ranking = {
    ...rankingOf({ ...options, rerank: undefined, 'rerank-depth': DEFAULT_RERANK_DEPTH }, info, depth),
    ...(options['also-bm25'] ? { mode: 'dense' as const } : {}),
    template: options['query-template'],
  };
  return {
    search: { ranking, depth, alsoBm25: options['also-bm25'] },
    rangeMin: options['range-min'],
    limits,
    sampling: { strategy: options['sampling-strategy'], seed: options.seed, count },
    minNegatives: ROW_FORMATS[options.format!].needsAllNegatives ? count : options['min-negatives'],
    nearDuplicate,
    rerank: options.rerank !== undefined,
    needScores: options['output-scores'],
    inputOf: (query) => queryOf(query, form),
  };
}

/** The settings in the report, which a run that resumes must have in common with the first. */
export async function mineSettings(
  options: MineValues,
  { search, sampling, limits, minNegatives, rerank, nearDuplicate }: BatchSettings,
  { source, server }: OpenSource,
): Promise<Readonly<Record<string, unknown>>> {
  return {
    format: options.format,
    num_negatives: sampling.count,
    min_negatives: minNegatives,
    range_min: options['range-min'],
    range_max: search.depth,
    max_score: limits.maxScore,
    min_score: limits.minScore,
    absolute_margin: limits.absoluteMargin,
    relative_margin: limits.relativeMargin,
    sampling_strategy: sampling.strategy,
    seed: sampling.seed,
    near_duplicate: nearDuplicate,
    output_scores: options['output-scores'],
    query_form: options['query-form'],
    records: options.records.map((path) => resolve(path)),
    split: options.split ?? null,
    search: search.ranking,
    also_bm25: options['also-bm25'],
    view: options.view ?? null,
    view_sha256: server === undefined ? await viewHash(options) : server.viewSha256,
    ...(server === undefined ? {} : { server_view: server.view, server_trawl: server.version }),
    precision: options.precision ?? null,
    device: options.device,
    rerank: options.rerank ?? null,
    rerank_api: options['rerank-api'] ?? null,
    rerank_model: options['rerank-model'] ?? null,
    rerank_max_tokens: rerank ? options['rerank-max-tokens'] : null,
    reranker: rerank ? source.info.reranker : null,
    trawl: packageVersion,
  };
}

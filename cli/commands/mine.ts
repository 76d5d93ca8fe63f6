import { resolve } from 'node:path';
import { queryOf } from '../../evaluation/query-form.ts';
import { usageError } from '../../src/base/errors.ts';
import { formatCount } from '../../src/base/format.ts';
import type { OptionValues } from '../../src/base/options/option-spec.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { closeAll } from '../../src/base/system/close-all.ts';
import { DEFAULT_RERANK_DEPTH } from '../../src/search/calls/retrieve-call.ts';
import type { SearchSourceInfo } from '../../src/search/retriever.ts';
import type { SearchMode } from '../../src/search/search-mode.ts';
import { type QuerySource, questionQueries } from '../../training/mining/load-queries.ts';
import type { BatchSettings } from '../../training/mining/mine-batch.ts';
import { mineNegatives } from '../../training/mining/mine-negatives.ts';
import { openRecordSource, type RecordSource } from '../../training/mining/record-source.ts';
import { ROW_FORMATS } from '../../training/mining/row-formats.ts';
import { checkMineOptions, MINE_OPTIONS, nearDuplicateShare, scoreLimits } from '../mine/mine-options.ts';
import { reportText } from '../mine/mine-report.ts';
import { checkEndpointOptions } from '../model/endpoint-options.ts';
import { type OpenSource, openSource, SERVED_INDEX_OPTION, SERVER_OPTIONS, withFolder } from '../open/search-source.ts';
import { refuseOptions } from '../options/checks.ts';
import { filterOption } from '../options/filter-option.ts';
import { QUERY_FORM_OPTION, QUERY_TEMPLATE_OPTION } from '../options/query-form.ts';
import { modesOption, RANKING_OPTIONS, rankingOf } from '../options/ranking-options.ts';
import { checkRerankOptions, RERANK_OPTIONS } from '../options/rerank-options.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../options/retriever-options.ts';
import { VIEW_OPTIONS, viewHash } from '../options/view-options.ts';
import { withProgress } from '../output/progress/step-progress.ts';
import { defineCommand, EXIT } from '../program/command.ts';

// `trawl mine` reranks all candidates that no rule dropped.
const { 'rerank-depth': _, ...JUDGE_OPTIONS } = RERANK_OPTIONS;

const options = {
  ...MINE_OPTIONS,
  ...SERVER_OPTIONS,
  index: SERVED_INDEX_OPTION,
  'query-form': QUERY_FORM_OPTION,
  'query-template': QUERY_TEMPLATE_OPTION,
  ...RANKING_OPTIONS,
  ...VIEW_OPTIONS,
  ...JUDGE_OPTIONS,
  ...RETRIEVER_OPTIONS,
} as const;

type Options = OptionValues<typeof options>;

export const mineCommand = defineCommand({
  name: 'mine',
  summary: 'mine hard negatives from an index, as rows for training a retriever',
  description:
    'Searches for every judged query and writes training rows: the query, its positives, and passages that the index ranks high ' +
    'although they are not relevant. A passage that may be relevant is not taken as a negative: positives of the query or of another query for the same ' +
    'question, copies and near-duplicates of them, and passages with a golden answer. Gaps are not filled with random passages: ' +
    'a query has fewer negatives, or no row. docs/training.md has the rules, and each format field by field.\n\n' +
    'With --rerank the scores of the cross-encoder take the place of the scores of the search, also for the thresholds.\n\n' +
    'OUT.report.json has counts by reason, ranks and scores, and examples to read; ' +
    "OUT.origins.jsonl has each row's query, passages, index generation and model. The same command resumes a run that was " +
    'stopped, from OUT.work; equal inputs and options give equal files, byte for byte.\n\n' +
    'With --json: the content of the report file.',
  positionals: { usage: '[index]', help: { index: 'The index directory. Not with --url.' } },
  resumable: true,
  options,
  examples: [
    'trawl mine indexes/sample --queries corpus/sample/questions.jsonl --out train.jsonl --format flagembedding --relative-margin 0.05',
    'trawl mine --url http://127.0.0.1:8000 --queries nq-train.jsonl --out train.jsonl --format tevatron --num-negatives 15',
    'trawl mine indexes/wiki18 --queries nq-train.jsonl --exclude-questions nq-test.jsonl --out train.jsonl --format tevatron --num-negatives 15 --range-min 5 --range-max 200',
    'trawl mine indexes/wiki18 --queries train.jsonl --qrels qrels.tsv --out triplets.parquet --format triplet --rerank ms-marco-MiniLM-L6-v2 --absolute-margin 0.2',
  ],
  async run(context) {
    const { options, positionals, given, signal, out, note } = context;
    checkMineOptions(options);
    const [folder] = withFolder(positionals, options, given, 1);
    if (options.url === undefined) {
      if (folder === undefined) throw usageError('Expected an index directory, or --url URL.');
      refuseOptions(given, ['index'], 'without --url URL');
    }
    const limits = scoreLimits(options);
    const nearDuplicate = nearDuplicateShare(options);
    filterOption(options.filter);
    const modes = minedModes(options, given);
    const unranked = { ...options, 'rerank-depth': DEFAULT_RERANK_DEPTH };
    checkRerankOptions(unranked, given);
    checkEndpointOptions(options.model, given);
    const opened = await openSource({
      options: unranked,
      folder,
      served: options.index,
      retrieving: { ...retrieverOptions(options), signal, modes, onWarning: note },
      note,
    });
    let records: RecordSource | undefined;
    try {
      if (options.records.length > 0) records = await openRecordSource(options.records);
      const { source, server } = opened;
      const batch = batchSettings(options, source.info, { limits, nearDuplicate });
      const settings = await mineSettings(options, batch, opened);
      const summary = await withProgress(options, (show) =>
        mineNegatives({
          retriever: source,
          source: querySource(options, records, source.info.generation),
          inputs: [...options.queries, options.qrels, ...options['exclude-questions']].filter(
            (file) => file !== undefined,
          ),
          records,
          out: options.out!,
          restart: options.restart,
          format: options.format!,
          outputScores: options['output-scores'],
          batch,
          settings,
          server: server?.url,
          onProgress: ({ queries, totalQueries, rows }) =>
            show({
              step: 'mining negatives',
              share: totalQueries === 0 ? 1 : queries / totalQueries,
              facts: `${formatCount(queries)} of ${formatCount(totalQueries)} queries, ${formatCount(rows)} rows`,
            }),
          onWarning: note,
          signal,
        }),
      );
      out(options.json ? JSON.stringify(summary) : reportText(summary));
      if (summary.rows > 0) return EXIT.ok;
      note('No query got a row. The counts above say why.');
      return EXIT.failed;
    } finally {
      await closeAll(records, opened);
    }
  },
});

/** The modes that the index must have; undefined if the index decides. @throws TrawlError USAGE. */
function minedModes(options: Options, given: ReadonlySet<string>): readonly SearchMode[] | undefined {
  const modes = modesOption(options, given);
  if (!options['also-bm25']) return modes;
  if (modes !== undefined && modes[0] !== 'dense') {
    throw usageError(`--also-bm25 has no effect with --mode ${modes[0]}; it adds to dense search.`);
  }
  return undefined;
}

/** What is mined: questions, or the records with the judgements of the questions. */
function querySource(options: Options, records: RecordSource | undefined, generation: string): QuerySource {
  const others = { qrels: options.qrels, excluded: options['exclude-questions'] };
  const judged = questionQueries(options.queries);
  if (records === undefined) return { queries: judged, ...others };
  const limits = { split: options.split, generation: options['any-generation'] ? undefined : generation };
  return { queries: records.queries(limits), judged, ...others };
}

/** How a batch is searched, judged and sampled. */
function batchSettings(
  options: Options,
  info: SearchSourceInfo,
  { limits, nearDuplicate }: Pick<BatchSettings, 'limits' | 'nearDuplicate'>,
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
async function mineSettings(
  options: Options,
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

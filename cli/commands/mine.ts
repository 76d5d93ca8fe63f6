import { resolve } from 'node:path';
import { ROW_FORMATS } from '../../mining/formats/formats.ts';
import { type MiningProgress, mineNegatives } from '../../mining/mine-negatives.ts';
import type { MiningQuery } from '../../mining/mining-query.ts';
import { questionQueries } from '../../mining/question-queries.ts';
import { RecordSource } from '../../mining/record-source.ts';
import type { EncoderInput } from '../../src/embedding/text-encoder.ts';
import { TrawlError } from '../../src/errors.ts';
import { packageVersion } from '../../src/package-root.ts';
import { DEFAULT_RERANK_DEPTH } from '../../src/retrieval/calls/rerank-call.ts';
import { defineCommand, EXIT } from '../command.ts';
import { filterOption } from '../filter-option.ts';
import { formatCount } from '../format.ts';
import { checkMineOptions, MINE_OPTIONS, nearDuplicateShare, scoreLimits } from '../mine/mine-options.ts';
import { reportText } from '../mine/report-text.ts';
import { checkEndpointOptions } from '../model/endpoint-options.ts';
import { stepProgress } from '../progress/step-progress.ts';
import { QUERY_FORM_OPTION, QUERY_TEMPLATE_OPTION, queryOf, templateOf } from '../query-form.ts';
import { modesOption, RANKING_OPTIONS, rankingOf } from '../ranking-options.ts';
import { checkRerankOptions, RERANK_OPTIONS } from '../rerank-options.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../retriever-options.ts';
import { openSource, SERVED_INDEX_OPTION, SERVER_OPTIONS, withFolder } from '../search-source.ts';
import { viewHash } from '../view-hash.ts';
import { VIEW_OPTIONS } from '../view-options.ts';

/** `trawl mine` reranks all candidates that no rule dropped, so it has no `--rerank-depth`. */
const { 'rerank-depth': _, ...JUDGE_OPTIONS } = RERANK_OPTIONS;

export const mineCommand = defineCommand({
  name: 'mine',
  summary: 'mine hard negatives from an index, as rows for training a retriever',
  description:
    'Searches for every judged query and writes training rows: the query, its positives, and passages that the index ranks high ' +
    'although they are not relevant. What may be relevant is no negative: positives of the query or of another query for the same ' +
    'question, copies and near-duplicates of them, and passages with a golden answer. Gaps are not filled with random passages: ' +
    'a query has fewer negatives, or no row. docs/training.md has the rules, and each format field by field.\n\n' +
    'With --rerank the scores of the cross-encoder take the place of the scores of the search, also for the thresholds.\n\n' +
    'OUT.report.json has counts by reason, ranks and scores, and examples to read. The formats of sentence-transformers also get ' +
    "OUT.origins.jsonl with each row's query, passages, index generation and model. The same command resumes a run that was " +
    'stopped, from OUT.work; equal inputs and options give equal files, byte for byte.\n\n' +
    'With --json: the content of the report file.',
  positionals: { usage: '[index]', help: { index: 'The index directory. Not with --url.' }, min: 0, max: 1 },
  resumable: true,
  options: {
    ...MINE_OPTIONS,
    ...SERVER_OPTIONS,
    index: SERVED_INDEX_OPTION,
    'query-form': QUERY_FORM_OPTION,
    'query-template': QUERY_TEMPLATE_OPTION,
    ...RANKING_OPTIONS,
    ...VIEW_OPTIONS,
    ...JUDGE_OPTIONS,
    ...RETRIEVER_OPTIONS,
  },
  examples: [
    'trawl mine indexes/sample --queries corpus/sample/questions.jsonl --out train.jsonl --format flagembedding --relative-margin 0.05',
    'trawl mine --url http://127.0.0.1:8000 --queries nq-train.jsonl --out train.jsonl --format tevatron --num-negatives 15',
    'trawl mine indexes/wiki18 --queries nq-train.jsonl --exclude-questions nq-test.jsonl --out train.jsonl --format tevatron --num-negatives 15 --range-min 5 --range-max 200',
    'trawl mine indexes/wiki18 --queries train.jsonl --qrels qrels.tsv --out triplets.parquet --format triplet --rerank ms-marco-MiniLM-L6-v2 --absolute-margin 0.2',
  ],
  async run({ options, positionals, given, signal, out, note }) {
    checkMineOptions(options);
    const [folder] = withFolder(positionals, options, given, 1);
    if (options.url === undefined && (folder === undefined || options.index !== undefined)) {
      throw new TrawlError(
        'USAGE',
        folder === undefined
          ? 'Expected an index directory, or --url URL.'
          : '--index has no effect without --url URL.',
      );
    }
    const limits = scoreLimits(options);
    const nearDuplicate = nearDuplicateShare(options);
    filterOption(options.filter);
    const modes = modesOption(options, given);
    if (options['also-bm25'] && modes !== undefined && modes[0] !== 'dense') {
      throw new TrawlError('USAGE', `--also-bm25 has no effect with --mode ${modes[0]}; it adds to dense search.`);
    }
    const unranked = { ...options, 'rerank-depth': DEFAULT_RERANK_DEPTH };
    checkRerankOptions(unranked, given);
    checkEndpointOptions(options.model, given);
    const format = options.format!;
    const { 'num-negatives': count, 'range-max': depth, 'query-form': form } = options;
    const retrieving = {
      ...retrieverOptions(options),
      signal,
      ...(modes === undefined || options['also-bm25'] ? {} : { modes }),
      onWarning: note,
    };
    const { source, server, close } = await openSource({
      options: unranked,
      given,
      folder,
      served: options.index,
      retrieving,
      note,
    });
    const progress = stepProgress({ silent: options.quiet || options.json });
    let records: RecordSource | undefined;
    try {
      if (options.records.length > 0) records = await RecordSource.open(options.records);
      const ranking = {
        ...rankingOf({ ...unranked, rerank: undefined }, source.info, depth),
        ...(options['also-bm25'] ? { mode: 'dense' as const } : {}),
        ...templateOf(options['query-template']),
      };
      const rerank = options.rerank !== undefined;
      const minNegatives = ROW_FORMATS[format].needsAllNegatives ? count : options['min-negatives'];
      const sampling = { strategy: options['sampling-strategy'], seed: options.seed, count };
      const summary = await mineNegatives({
        retriever: source,
        source: {
          ...(records === undefined
            ? { queries: questionQueries(options.queries) }
            : {
                queries: records.queries({
                  split: options.split,
                  generation: options['any-generation'] ? undefined : source.info.generation,
                }),
                judged: questionQueries(options.queries),
              }),
          qrels: options.qrels,
          excluded: options['exclude-questions'],
        },
        inputs: [
          ...options.queries,
          ...(options.qrels === undefined ? [] : [options.qrels]),
          ...options['exclude-questions'],
        ],
        records,
        out: options.out!,
        restart: options.restart || options.overwrite,
        format,
        outputScores: options['output-scores'],
        batch: {
          search: { ranking, depth, alsoBm25: options['also-bm25'] },
          rangeMin: options['range-min'],
          limits,
          sampling,
          minNegatives,
          nearDuplicate,
          rerank,
          needScores: options['output-scores'],
          inputOf: (query: MiningQuery): EncoderInput => queryOf(query, form),
        },
        settings: {
          format,
          num_negatives: count,
          min_negatives: minNegatives,
          range_min: options['range-min'],
          range_max: depth,
          max_score: limits.maxScore,
          min_score: limits.minScore,
          absolute_margin: limits.absoluteMargin,
          relative_margin: limits.relativeMargin,
          sampling_strategy: sampling.strategy,
          seed: sampling.seed,
          near_duplicate: nearDuplicate,
          output_scores: options['output-scores'],
          query_form: form,
          records: options.records.map((path) => resolve(path)),
          split: options.split ?? null,
          search: ranking,
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
        },
        server: server?.url,
        onProgress: (state) => progress.update(shownProgress(state)),
        onWarning: note,
        signal,
      });
      progress.stop();
      out(options.json ? JSON.stringify(summary) : reportText(summary));
      if (summary.rows > 0) return EXIT.ok;
      note('No query got a row. The counts above say why.');
      return EXIT.failed;
    } finally {
      progress.stop();
      await records?.close();
      await close();
    }
  },
});

function shownProgress({ queries, totalQueries, rows }: MiningProgress): {
  step: string;
  share: number;
  facts: string;
} {
  return {
    step: 'mining negatives',
    share: totalQueries === 0 ? 1 : queries / totalQueries,
    facts: `${formatCount(queries)} of ${formatCount(totalQueries)} queries, ${formatCount(rows)} rows`,
  };
}

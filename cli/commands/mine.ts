import { usageError } from '../../src/base/errors.ts';
import { formatCount } from '../../src/base/format.ts';
import { closeAll } from '../../src/base/system/close-all.ts';
import { DEFAULT_RERANK_DEPTH } from '../../src/search/calls/retrieve-call.ts';
import type { SearchMode } from '../../src/search/search-mode.ts';
import { type MiningProgress, mineNegatives } from '../../training/mining/mine-negatives.ts';
import { RecordSource } from '../../training/mining/record-source.ts';
import { checkMineOptions, MINE_OPTIONS, nearDuplicateShare, scoreLimits } from '../mine/mine-options.ts';
import { reportText } from '../mine/mine-report.ts';
import { batchSettings, JUDGE_OPTIONS, type MineValues, mineSettings, querySource } from '../mine/mine-settings.ts';
import { checkEndpointOptions } from '../model/endpoint-options.ts';
import { openSource, SERVED_INDEX_OPTION, SERVER_OPTIONS, withFolder } from '../open/search-source.ts';
import { filterOption } from '../options/filter-option.ts';
import { QUERY_FORM_OPTION, QUERY_TEMPLATE_OPTION } from '../options/query-form.ts';
import { modesOption, RANKING_OPTIONS } from '../options/ranking-options.ts';
import { checkRerankOptions } from '../options/rerank-options.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../options/retriever-options.ts';
import { VIEW_OPTIONS } from '../options/view-options.ts';
import { stepProgress } from '../output/progress/step-progress.ts';
import { defineCommand, EXIT } from '../program/command.ts';

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
  async run(context) {
    const { options, positionals, given, signal, out, note } = context;
    checkMineOptions(options);
    const [folder] = withFolder(positionals, options, given, 1);
    checkIndex(folder, options);
    const limits = scoreLimits(options);
    const nearDuplicate = nearDuplicateShare(options);
    filterOption(options.filter);
    const modes = minedModes(options, given);
    const unranked = { ...options, 'rerank-depth': DEFAULT_RERANK_DEPTH };
    checkRerankOptions(unranked, given);
    checkEndpointOptions(options.model, given);
    const opened = await openSource({
      options: unranked,
      given,
      folder,
      served: options.index,
      retrieving: { ...retrieverOptions(options), signal, modes, onWarning: note },
      note,
    });
    const progress = stepProgress({ silent: options.quiet || options.json });
    let records: RecordSource | undefined;
    try {
      if (options.records.length > 0) records = await RecordSource.open(options.records);
      const { info } = opened.source;
      const batch = batchSettings(options, { info, limits, nearDuplicate });
      const summary = await mineNegatives({
        retriever: opened.source,
        source: querySource(options, records, info.generation),
        inputs: [
          ...options.queries,
          ...(options.qrels === undefined ? [] : [options.qrels]),
          ...options['exclude-questions'],
        ],
        records,
        out: options.out!,
        restart: options.restart,
        format: options.format!,
        outputScores: options['output-scores'],
        batch,
        settings: await mineSettings(options, batch, opened),
        server: opened.server?.url,
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
      await closeAll(records, opened);
    }
  },
});

/** @throws TrawlError USAGE. */
function checkIndex(folder: string | undefined, { url, index }: MineValues): void {
  if (url !== undefined) return;
  if (folder === undefined) throw usageError('Expected an index directory, or --url URL.');
  if (index !== undefined) throw usageError('--index has no effect without --url URL.');
}

/** The modes that the index must have; undefined if the index decides. @throws TrawlError USAGE. */
function minedModes(options: MineValues, given: ReadonlySet<string>): readonly SearchMode[] | undefined {
  const modes = modesOption(options, given);
  if (!options['also-bm25']) return modes;
  if (modes !== undefined && modes[0] !== 'dense') {
    throw usageError(`--also-bm25 has no effect with --mode ${modes[0]}; it adds to dense search.`);
  }
  return undefined;
}

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

import { OUTPUT_FORMATS } from '../../evaluation/bulk-search/outputs/output-format.ts';
import { QUERY_FORMATS } from '../../evaluation/bulk-search/query-file.ts';
import { usageError } from '../../src/base/errors.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import { FURTHER_INDEX_OPTION } from '../open/open-reranked.ts';
import { SERVER_OPTIONS } from '../open/search-source.ts';
import { refuseOptions } from '../options/checks.ts';
import * as option from '../options/option.ts';
import { QUERY_FORM_OPTION, QUERY_TEMPLATE_OPTION } from '../options/query-form.ts';
import { RANKING_OPTIONS } from '../options/ranking-options.ts';
import { RERANK_OPTIONS } from '../options/rerank-options.ts';
import { RESTART_OPTION } from '../options/restart-option.ts';
import { RETRIEVER_OPTIONS } from '../options/retriever-options.ts';
import { VIEW_OPTIONS } from '../options/view-options.ts';

/** The options of `trawl search` for many queries. */
const BULK_OPTIONS = {
  queries: option.text(
    'FILE',
    'Search for every query of a file instead of one query; needs --out. JSON lines or Parquet with {"id", "question", "query"?, "history_queries"?, "round_index"?}, TSV (id, tab, query) or TREC topics. Ids may repeat (docs/bulk-search.md).',
  ),
  'queries-format': option.choice(
    QUERY_FORMATS,
    'Format of --queries. Default: by its name, .tsv, .parquet, .trec, .topics or .xml (topics), else jsonl; .gz and .zst after it are decompressed.',
  ),
  'query-vectors': option.text(
    'FILE',
    'Search for every vector of a file (.npy or .fvecs) without an encoder; needs --out. With --queries, row i is the vector of query i; without, ids are row numbers.',
  ),
  out: option.text(
    'FILE',
    'With --queries or --query-vectors: file for the hits, in the order of the queries. An existing file is replaced at the end.',
  ),
  'out-format': option.choice(
    OUTPUT_FORMATS,
    'Format of --out: jsonl (a line per query), parquet (a row per hit), trec (a TREC run) or npy (row numbers, queries × k). Default: by its name, .parquet, .npy, .trec or .run, else jsonl.',
  ),
  'scores-out': option.text('FILE.npy', 'With row numbers as .npy: file for their scores, as a matrix of float32.'),
  tag: option.text({ default: 'trawl' }, 'With a TREC run as --out: name of the run in its last column.'),
  shard: option.text(
    'I/N',
    'Search only part I (counted from 0) of N of the queries, as one of several jobs. The outputs of the parts, one after another, are the output of all queries.',
  ),
  'checkpoint-seconds': option.integer(
    { min: 0, default: 5 },
    'Seconds between two saved states, from which a killed search resumes. 0: after every batch of queries.',
  ),
  restart: RESTART_OPTION,
} as const satisfies OptionTable;

/** The options of `trawl search`. */
export const SEARCH_OPTIONS = {
  k: option.integer({ min: 1, default: 5 }, 'Passages per query.'),
  index: {
    ...FURTHER_INDEX_OPTION,
    help: `${FURTHER_INDEX_OPTION.help} With --url: the name of the served index.`,
  },
  question: option.text(
    'TEXT',
    'The question that the query was derived from: embeds "QUESTION [SEP] QUERY", like Agentic-R.',
  ),
  history: option.list(
    'TEXT',
    'An earlier query for the question; repeat the option for several, oldest first. Embedded if the template has the history.',
  ),
  'query-template': QUERY_TEMPLATE_OPTION,
  ...BULK_OPTIONS,
  ...SERVER_OPTIONS,
  'query-form': QUERY_FORM_OPTION,
  explain: option.flag(
    'With --mode bm25 or hybrid and one query: show the terms of each BM25 score, how often they are in the query (boost), how many passages have them, and their parts of the score; with hybrid also what each list adds to the score.',
  ),
  ...RANKING_OPTIONS,
  ...VIEW_OPTIONS,
  ...RERANK_OPTIONS,
  ...RETRIEVER_OPTIONS,
} as const;

export type SearchOptions = OptionValues<typeof SEARCH_OPTIONS>;

/** Whether the options ask for a bulk search. @throws TrawlError USAGE if they contradict each other. */
export function isBulkSearch(options: SearchOptions, query: string | undefined, given: ReadonlySet<string>): boolean {
  const from = options.queries === undefined ? '--query-vectors' : '--queries';
  const isBulk = options.queries !== undefined || options['query-vectors'] !== undefined;
  if ((query === undefined) !== isBulk) {
    throw usageError('Expected either a query or --queries FILE (or --query-vectors FILE).');
  }
  if (isBulk && (options.out === undefined || options.out === '')) {
    throw usageError(`${from} needs --out FILE for the hits.`);
  }
  if (!isBulk) refuseOptions(given, Object.keys(BULK_OPTIONS), 'without --queries or --query-vectors');
  if (options['queries-format'] !== undefined && options.queries === undefined) {
    throw usageError('--queries-format has no effect without --queries.');
  }
  return isBulk;
}

import { OUTPUT_FORMATS } from '../../evaluation/bulk-search/outputs/output-format.ts';
import { QUERY_FORMATS } from '../../evaluation/bulk-search/query-format.ts';
import { usageError } from '../../src/base/errors.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import { refuseOptions } from '../options/checks.ts';
import { RESTART_OPTION } from '../options/restart-option.ts';

/** The options of `trawl search` for many queries. */
export const BULK_OPTIONS = {
  queries: {
    type: 'string',
    value: 'FILE',
    help: 'Search for every query of a file instead of one query; needs --out. JSON lines or Parquet with {"id", "question", "query"?, "history_queries"?, "round_index"?}, TSV (id, tab, query) or TREC topics. Ids may repeat (docs/bulk-search.md).',
  },
  'queries-format': {
    type: 'choice',
    choices: QUERY_FORMATS,
    help: 'Format of --queries. Default: by its name, .tsv, .parquet, .trec, .topics or .xml (topics), else jsonl; .gz and .zst after it are decompressed.',
  },
  'query-vectors': {
    type: 'string',
    value: 'FILE',
    help: 'Search for every vector of a file (.npy or .fvecs) without an encoder; needs --out. With --queries, row i is the vector of query i; without, ids are row numbers.',
  },
  out: {
    type: 'string',
    value: 'FILE',
    help: 'With --queries or --query-vectors: file for the hits, in the order of the queries. An existing file is replaced at the end.',
  },
  'out-format': {
    type: 'choice',
    choices: OUTPUT_FORMATS,
    help: 'Format of --out: jsonl (a line per query), parquet (a row per hit), trec (a TREC run) or npy (row numbers, queries × k). Default: by its name, .parquet, .npy, .trec or .run, else jsonl.',
  },
  'scores-out': {
    type: 'string',
    value: 'FILE.npy',
    help: 'With row numbers as .npy: file for their scores, as a matrix of float32.',
  },
  tag: { type: 'string', default: 'trawl', help: 'With a TREC run as --out: name of the run in its last column.' },
  shard: {
    type: 'string',
    value: 'I/N',
    help: 'Search only part I (counted from 0) of N of the queries, as one of several jobs. The outputs of the parts, one after another, are the output of all queries.',
  },
  'checkpoint-seconds': {
    type: 'integer',
    min: 0,
    default: 5,
    help: 'Seconds between two saved states, from which a killed search resumes. 0: after every batch of queries.',
  },
  restart: RESTART_OPTION,
} as const satisfies OptionTable;

export type BulkOptions = OptionValues<typeof BULK_OPTIONS>;

/** Whether the options ask for a bulk search. @throws TrawlError USAGE if they contradict each other. */
export function isBulkSearch(options: BulkOptions, query: string | undefined, given: ReadonlySet<string>): boolean {
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

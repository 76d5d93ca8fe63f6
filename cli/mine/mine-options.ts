import { usageError } from '../../src/base/errors.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import { DEFAULT_SERVER_CONFIG } from '../../src/server/server-config.ts';
import { SAMPLING_STRATEGIES, type ScoreLimits } from '../../training/mining/choose-negatives.ts';
import { checkRowFile } from '../../training/mining/row-files.ts';
import { ROW_FORMAT_NAMES } from '../../training/mining/row-formats.ts';
import { requiredOption } from '../options/checks.ts';
import { numberFrom } from '../options/numbers.ts';
import * as option from '../options/option.ts';
import { RESTART_OPTION } from '../options/restart-option.ts';

/** The options of `trawl mine` that say what is read, chosen and written. */
export const MINE_OPTIONS = {
  queries: option.list(
    'FILE',
    'Questions as JSON lines: {"id", "question", "query"?, "history_queries"?, "round_index"?, "dataset"?, "gold_ids"?, "golden_answers"?}, or {"_id", "text"} as in BEIR. Repeat the option for several files. Required, unless --records and --qrels are given.',
  ),
  records: option.list(
    'FILE',
    'Mine for the queries of this file of `trawl serve --record` and its rotated files, in place of --queries. Each has the positives and answers of the question in --queries with its questionId, else of the one with the same text. Repeat the option for several files.',
  ),
  split: option.text('NAME', 'With --records: only queries that the client marked with this split. Default: all.'),
  'any-generation': option.flag(
    'With --records: allow queries that were asked in another generation of the index. Default: refuse them, because what an agent asks depends on what it found.',
  ),
  qrels: option.text('FILE', 'Judgements (TREC qrels or BEIR tsv) to use instead of gold_ids.'),
  'exclude-questions': option.list(
    'FILE',
    'Questions that must not be trained on, such as a test set: JSON lines as for --queries. A query whose question or sub-query is one of them, but for case, quotes and spaces, is left out and counted. Repeat the option for several files.',
  ),
  out: option.text(
    'FILE',
    'The file of training rows: JSON lines (dpr: one JSON array), or Parquet if its name ends in .parquet, only with a format of sentence-transformers. Required.',
  ),
  format: option.choice(
    { choices: ROW_FORMAT_NAMES, value: 'FORMAT' },
    "The trainer's format: of sentence-transformers triplet, n-tuple, labeled-pair or labeled-list; tevatron (rows with texts), tevatron-ids, agentic-r (the rows of its tevatron), flagembedding, dpr. docs/training.md describes each field. Required.",
  ),
  'num-negatives': option.integer({ min: 1, max: 10_000, default: 3 }, 'The most negatives of a query.'),
  'min-negatives': option.integer(
    { min: 0, max: 10_000, default: 1 },
    'A query with fewer negatives gets no row and is counted. n-tuple and agentic-r need all: there it is --num-negatives. 0, only with labeled-pair: positives get their rows in any case.',
  ),
  'range-min': option.integer(
    { min: 1, max: DEFAULT_SERVER_CONFIG.maxK, default: 1 },
    'The first rank whose passage may be a negative. Ranks count from 1 in the list as the search returns it, whatever the rules drop.',
  ),
  'range-max': option.integer(
    { min: 1, max: DEFAULT_SERVER_CONFIG.maxK, default: 100 },
    'The last such rank, and so the depth of the search.',
  ),
  'max-score': option.text('S', 'Drop candidates with a larger score.'),
  'min-score': option.text('S', 'Drop candidates with a smaller score.'),
  'absolute-margin': option.text(
    'M',
    'Drop a candidate with the score s if s + M > p, where p is the lowest score of a positive of the query.',
  ),
  'relative-margin': option.text(
    'R',
    'Drop a candidate with the score s if s > p - |p| * R. 0.05 drops those above 95 % of the positive.',
  ),
  'sampling-strategy': option.choice(
    { choices: SAMPLING_STRATEGIES, default: 'top' },
    'Which of the remaining candidates become negatives: the best, or a random choice that depends only on --seed, the query and the passages.',
  ),
  seed: option.integer({ min: 0, default: 0 }, 'Seed of the random choice.'),
  'near-duplicate': option.text(
    { value: 'SHARE|off', default: '0.8' },
    'Drop candidates that share at least this share of their runs of three words with a positive, or with a better candidate. off: only equal texts are dropped.',
  ),
  'output-scores': option.flag(
    'With the formats of sentence-transformers: write the scores, for distillation. In any format, a query with a positive whose score is not known gets no row.',
  ),
  'also-bm25': option.flag(
    'With dense search: the BM25 list gives candidates, too. Both lists have the same range of ranks; dense search gives the scores.',
  ),
  restart: RESTART_OPTION,
} as const satisfies OptionTable;

type Values = OptionValues<typeof MINE_OPTIONS>;

/** @throws TrawlError USAGE. */
export function scoreLimits(options: Values): ScoreLimits {
  const score = (name: 'max-score' | 'min-score'): number | null => {
    const text = options[name];
    if (text === undefined) return null;
    const value = /^[+-]?\d*\.?\d+(?:e[+-]?\d+)?$/i.test(text.trim()) ? Number(text) : Number.NaN;
    if (Number.isFinite(value)) return value;
    throw usageError(`--${name} is ${JSON.stringify(text)}; expected a number.`);
  };
  const margin = (name: 'absolute-margin' | 'relative-margin'): number | null => {
    const text = options[name];
    return text === undefined ? null : numberFrom(name, text, { max: 1_000_000 });
  };
  return {
    maxScore: score('max-score'),
    minScore: score('min-score'),
    absoluteMargin: margin('absolute-margin'),
    relativeMargin: margin('relative-margin'),
  };
}

/** The similarity from which texts are near-duplicates; null: none are. @throws TrawlError USAGE. */
export function nearDuplicateShare({ 'near-duplicate': text }: Values): number | null {
  if (text === 'off') return null;
  const share = numberFrom('near-duplicate', text, { max: 1 });
  if (share > 0) return share;
  throw usageError('--near-duplicate is 0, which would drop every candidate; expected a share, or off.');
}

/** Checks what the options need of each other. @throws TrawlError USAGE. */
export function checkMineOptions(options: Values): void {
  if (options.queries.length === 0 && (options.records.length === 0 || options.qrels === undefined)) {
    throw usageError('--queries is missing: the file of questions, such as --queries questions.jsonl.');
  }
  if (options.records.length === 0 && (options.split !== undefined || options['any-generation'])) {
    const name = options.split === undefined ? 'any-generation' : 'split';
    throw usageError(`--${name} has no effect without --records FILE.`);
  }
  const out = requiredOption('out', options.out, 'the file of training rows');
  if (options.format === undefined) {
    throw usageError(`--format is missing: ${ROW_FORMAT_NAMES.join(', ')}.`);
  }
  checkRowFile(out, options.format);
  const { 'range-min': first, 'range-max': last, 'num-negatives': most, 'min-negatives': fewest } = options;
  if (first > last) {
    throw usageError(`--range-min ${first} is above --range-max ${last}: no rank would be left.`);
  }
  if (most > last - first + 1 && !options['also-bm25']) {
    throw usageError(
      `--num-negatives ${most} is more than the ${last - first + 1} ranks from --range-min ${first} to --range-max ${last}.`,
    );
  }
  if (fewest === 0 && options.format !== 'labeled-pair') {
    throw usageError('--min-negatives 0 needs --format labeled-pair: other rows without a negative are useless.');
  }
  if (fewest > most) {
    throw usageError(`--min-negatives ${fewest} is above --num-negatives ${most}: no query would get a row.`);
  }
}

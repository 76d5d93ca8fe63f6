import { readQuestionSet } from '../../evaluation/question-set.ts';
import { usageError } from '../../src/base/errors.ts';
import { formatCount, formatNumberOf } from '../../src/base/format.ts';
import { defined } from '../../src/base/objects.ts';
import { TRUNCATE_SIDES } from '../../src/encoder/text-encoder.ts';
import { goldQuestions } from '../../training/replay/gold-questions.ts';
import { DEFAULT_PERSISTENCE } from '../../training/replay/rank-biased-overlap.ts';
import { replayRecords } from '../../training/replay/replay-records.ts';
import { indexTarget } from '../../training/replay/replay-target.ts';
import { serverTarget } from '../../training/replay/server-target.ts';
import { type BundleSummary, writeBundle } from '../../training/replay/write-bundle.ts';
import { checkEndpointOptions } from '../model/endpoint-options.ts';
import { openReranked } from '../open/open-reranked.ts';
import { readApiKey } from '../options/api-key.ts';
import { refuseOptions } from '../options/checks.ts';
import { checkFilter, FILTER_OPTION, filterOption } from '../options/filter-option.ts';
import { numberFrom, parseCutoffs } from '../options/numbers.ts';
import * as option from '../options/option.ts';
import { QUERY_TEMPLATE_OPTION } from '../options/query-form.ts';
import { MODE_OPTION } from '../options/ranking-options.ts';
import { checkRerankOptions, RERANK_OPTIONS, rerankCall } from '../options/rerank-options.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../options/retriever-options.ts';
import { lines } from '../output/lines.ts';
import { type CommandContext, defineCommand, EXIT } from '../program/command.ts';
import { reportLines } from '../replay/replay-report.ts';

const options = {
  against: option.text(
    'URL|INDEX',
    'Ask every recorded query again, of this index directory or of a running server (http://HOST:PORT, or with /indexes/NAME for one of its indexes), and compare what it finds with what was recorded.',
  ),
  bundle: option.text(
    'OUT',
    'Write the recorded answers to the folder OUT, which trawl serve --replay OUT serves without the index. Needs --index.',
  ),
  index: option.text(
    'INDEX',
    'With --bundle: the index directory that answered, in the recorded generation. It has the passages; its encoder is not needed.',
  ),
  k: option.integer({ min: 1 }, 'With --against: passages per query. Default: as recorded.'),
  mode: {
    ...MODE_OPTION,
    help: 'With --against: rank by dense, bm25 or hybrid, with its default settings. Default: as recorded.',
  },
  filter: {
    ...FILTER_OPTION,
    help: 'With --against: a filter in place of the recorded one. docs/filters.md has the language. Default: as recorded.',
  },
  'query-template': {
    ...QUERY_TEMPLATE_OPTION,
    help: 'With --against: which of question, history and query are searched for. Default: as recorded.',
  },
  truncate: option.choice(
    TRUNCATE_SIDES,
    "With --against: what to shorten if a question and its query together exceed the model's token limit. Default: as recorded.",
  ),
  questions: option.text(
    'FILE',
    'With --against: questions with gold_ids or golden_answers (JSON lines, as for trawl eval). Adds the relevant passages and answers that are gained and lost. A record belongs to a question by its question id, or else by its text.',
  ),
  p: option.text(
    { value: 'NUMBER', default: String(DEFAULT_PERSISTENCE) },
    'With --against: the persistence of rank-biased overlap, larger than 0 and less than 1. With 0.9 the first ten ranks have 86 % of the weight; a smaller number weighs the first ranks more.',
  ),
  cutoffs: option.text(
    { value: 'K,K,…', default: '1,3,5,10' },
    'With --against: the values of k of overlap@k. A query counts for a k if both lists were asked for at least k passages.',
  ),
  examples: option.integer(
    { min: 0, max: 1000, default: 5 },
    'With --against: number of queries to show side by side, those whose lists differ most.',
  ),
  'key-file': option.text('FILE', 'With a URL as --against: file with the API key of the server.'),
  ...RERANK_OPTIONS,
  ...RETRIEVER_OPTIONS,
} as const;

type Context = CommandContext<typeof options>;

export const replayCommand = defineCommand({
  name: 'replay',
  summary: 'compare recorded searches with another index, or bundle them to be served without the index',
  description:
    'Reads files of --record (trawl serve). With --against it says what every recorded query would find now: overlap@k and ' +
    'rank-biased overlap of the lists, by turn, and the queries whose lists differ most; with --questions also the relevant ' +
    'passages and answers that are gained and lost. Passages are compared by id, or by row if the generation is the same. ' +
    'Settings are as recorded unless an option sets them.\n\n' +
    'With --bundle it writes the recorded answers with their passages to a folder, for tests and repeatable rollouts ' +
    '(trawl serve --replay).\n\n' +
    'With --json: the report, or {"bundle", "index", "generation", "records", "answers", "passages", "leftOut", "withoutFacts"} ' +
    '(docs/replay.md).',
  positionals: {
    usage: '<records> …',
    help: { records: 'Files of --record. The rotated files of each are read too.' },
    max: 10_000,
  },
  options,
  examples: [
    'trawl replay calls.jsonl --against indexes/wiki18-new --questions dev.jsonl',
    'trawl replay calls.jsonl --against http://127.0.0.1:8000 --k 5',
    'trawl replay calls.jsonl --against indexes/wiki18 --query-template query --json',
    'trawl replay calls.jsonl --bundle rollouts.bundle --index indexes/wiki18',
  ],
  async run(context) {
    const { against, bundle, index } = context.options;
    if ((against === undefined) === (bundle === undefined)) {
      throw usageError('Expected either --against URL|INDEX or --bundle OUT.');
    }
    if ((bundle === undefined) !== (index === undefined)) {
      throw usageError(
        bundle === undefined ? '--index has no effect without --bundle OUT.' : '--bundle needs --index INDEX.',
      );
    }
    if (bundle !== undefined) return makeBundle(context, bundle, index!);
    return compare(context, against!);
  },
});

const OF_BUNDLE: readonly string[] = ['bundle', 'index', 'json', 'quiet', 'config'];

async function makeBundle({ positionals, given, options, signal, out, note }: Context, bundle: string, index: string) {
  const others = [...given].filter((name) => !OF_BUNDLE.includes(name));
  refuseOptions(given, others, 'with --bundle');
  const summary = await writeBundle({
    records: positionals,
    index,
    out: bundle,
    signal,
    onProgress: ({ doing, done }) => note(`${doing}: ${formatCount(done)}`),
  });
  if (options.json) out(JSON.stringify(summary));
  else for (const line of bundleLines(summary)) out(line);
  return EXIT.ok;
}

function bundleLines(summary: BundleSummary): string[] {
  const { bundle, index, generation, records, answers, passages, leftOut, withoutFacts } = summary;
  const reasons = Object.entries(leftOut).flatMap(([why, count]) =>
    count > 0 ? [`${formatCount(count)} ${why}`] : [],
  );
  return lines(
    `${bundle}: ${formatNumberOf(answers, 'answer')} and ${formatNumberOf(passages, 'passage')} of ${formatNumberOf(records, 'record')}`,
    `index ${index}, generation ${generation}`,
    reasons.length > 0 && `left out: ${reasons.join(', ')}`,
    withoutFacts > 0 &&
      `${formatNumberOf(withoutFacts, 'record')} of an older server: their replies of /v1/search have 0 tokens`,
    `serve it: trawl serve --replay ${bundle}`,
  );
}

async function compare(context: Context, against: string): Promise<number> {
  const { options, positionals, signal, out, note } = context;
  const p = persistence(options.p);
  const cutoffs = parseCutoffs(options.cutoffs);
  const { target, changes, close } = await openTarget(context, against);
  try {
    const questions =
      options.questions === undefined ? undefined : (await readQuestionSet(options.questions)).questions;
    const report = await replayRecords({
      records: positionals,
      target,
      changes,
      p,
      cutoffs,
      gold: questions === undefined ? undefined : goldQuestions(questions),
      examples: options.examples,
      signal,
      onProgress: progressNotes(note),
    });
    const width = process.stdout.isTTY === true ? Math.max(60, process.stdout.columns || 100) : 120;
    if (options.json) out(JSON.stringify(report));
    else for (const line of reportLines(report, width)) out(line);
    if (report.all.queries > 0) return EXIT.ok;
    note('Nothing was compared: see the reasons above, and the ids of the two indexes.');
    return EXIT.failed;
  } finally {
    await close();
  }
}

/** A remark for every 50,000 records. */
function progressNotes(note: (text: string) => void): (records: number) => void {
  let next = 50_000;
  return (records) => {
    if (records < next) return;
    note(`compared ${formatCount(records)} records`);
    next = records + 50_000;
  };
}

/** Options that a running server has settled. */
const OF_INDEX: readonly string[] = [...Object.keys(RETRIEVER_OPTIONS), ...Object.keys(RERANK_OPTIONS)];

/** The index or server that is asked, and what is changed of the recorded calls. */
async function openTarget({ options, given, signal, note }: Context, against: string) {
  const filter = filterOption(options.filter);
  const { k, mode, truncate, 'query-template': template } = options;
  // What is not given stays as recorded.
  const changes = defined({ k, mode, truncate, filter, template });
  if (/^https?:\/\//.test(against)) {
    refuseOptions(given, OF_INDEX, 'with a URL: the server was started with its own');
    const target = serverTarget(against, { apiKey: readApiKey(options['key-file']) });
    return { target, changes, close: async () => undefined };
  }
  refuseOptions(given, ['key-file'], 'unless --against is a URL');
  checkRerankOptions(options, given);
  checkEndpointOptions(options.model, given);
  const retrieving = { ...retrieverOptions(options), signal, onWarning: note };
  const whole = { ...options, views: undefined, view: undefined };
  const { retriever, close } = await openReranked(against, whole, retrieving);
  try {
    checkFilter(filter, retriever.info);
  } catch (error) {
    await close();
    throw error;
  }
  return { target: indexTarget(retriever), changes: { ...changes, ...rerankCall(options) }, close };
}

function persistence(text: string): number {
  const p = numberFrom('p', text, { max: 1 });
  if (p > 0 && p < 1) return p;
  throw usageError(`--p is ${text}; expected a number larger than 0 and less than 1, such as 0.9.`);
}

import { usageError } from '../../src/base/errors.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import { PRECISIONS } from '../../src/encoder/identity/model-identity.ts';
import { ITERATION_STEPS } from '../../training/iteration/iteration-work.ts';
import { BUILD_OPTIONS } from '../building/build-options.ts';
import { DEVICE_OPTION, OVERRIDE_OPTIONS, SHARE_WEIGHTS_OPTION } from '../model/model-options.ts';
import { refuseOptions } from '../options/checks.ts';
import * as option from '../options/option.ts';
import { QUERY_FORM_OPTION } from '../options/query-form.ts';
import { RETRIEVER_OPTIONS } from '../options/retriever-options.ts';
import { TRIAGE_OPTIONS } from '../triage/triage-options.ts';

/** Options that an action uses in place of a checkpoint. */
const ACTION_OPTIONS = {
  back: option.flag('Serve the iteration before the current one again. Works while an iteration is built.'),
  to: option.integer({ min: 0 }, 'With --back: serve iteration N, an earlier or a later one.'),
  status: option.flag('Print the iterations with their measures, which one is served, and the unfinished one.'),
  prune: option.flag('Remove old iterations now: all but --keep.'),
  discard: option.flag('Remove the unfinished iteration with its files, such as a refused one.'),
} as const satisfies OptionTable;

const SERVER_OPTIONS = {
  server: option.list(
    'URL',
    'A running server of ROOT/current, to be reloaded: http://HOST:PORT, or with /indexes/NAME for one of several indexes. Repeat it for several servers. Without it, only the link changes.',
  ),
  'server-folder': option.text(
    'PATH',
    'The folder that the servers open, as they see it. Default: the one that they were started with, which must be ROOT/current.',
  ),
  'key-file': option.text('FILE', 'With --server: file with the API key, of the scope admin.'),
  keep: option.integer(
    { min: 2, default: 3 },
    'Iterations to keep: the one that is served, the one before it, the one that --back left, the one that an unfinished iteration is compared with, then the newest. Others are removed once all servers answer with the new one; without --server only by --prune. The index of --from is never removed.',
  ),
} as const satisfies OptionTable;

/** Options with help that says where an iteration takes a setting from that is not given. */
function inherited<Table extends OptionTable>(table: Table): Table {
  const changed = Object.entries(table).map(([name, option]) => {
    const help = option.help.replace(/ ?Default: the model's.*$/, '');
    return [name, { ...option, help: `${help} Default: as described above.` }];
  });
  return Object.fromEntries(changed) as Table;
}

function lowerFirst(text: string): string {
  return `${text[0]!.toLowerCase()}${text.slice(1)}`;
}

const RUN_OPTIONS = {
  from: option.text(
    'INDEX',
    'At the first iteration: the index that is served now. It becomes iteration 0 and stays where it is.',
  ),
  corpus: option.list(
    'FILE',
    'The corpus: files and directories, as for trawl index. It is read with the options, template, columns and inverted indexes of the index before. Required.',
  ),
  eval: option.text(
    'PATH',
    'Held-out questions with gold_ids (JSON lines or a folder of BEIR, as for trawl eval), which must not be among the training rows. Required.',
  ),
  qrels: option.text('FILE', 'Judgements (TREC qrels or BEIR tsv) to use instead of gold_ids.'),
  'query-form': QUERY_FORM_OPTION,
  'recall-k': option.integer({ min: 1, max: 1000, default: 10 }, 'The k of the recall that is checked.'),
  triage: option.flag(
    'Before the corpus is embedded, try the model on a part of the served index, as trawl triage does, and refuse it if its estimated recall@k is below a limit.',
  ),
  'triage-depth': {
    ...TRIAGE_OPTIONS.depth,
    help: `With --triage: ${lowerFirst(TRIAGE_OPTIONS.depth.help)}`,
  },
  'triage-sample': {
    ...TRIAGE_OPTIONS.sample,
    help: `With --triage: ${lowerFirst(TRIAGE_OPTIONS.sample.help)}`,
  },
  'triage-also-bm25': option.flag('With --triage: the first hits of BM25 in the served index join the pool, too.'),
  'triage-min-recall': option.text(
    'R',
    'With --triage: refuse a model whose estimated recall@k is below this. Default: --min-recall.',
  ),
  'triage-max-drop': option.text(
    'R',
    'With --triage: refuse a model whose estimated recall@k is further than this below the recall@k of the served index. Default: --max-recall-drop.',
  ),
  'min-recall': option.text('R', 'Refuse an index whose recall@k is below this, from 0 to 1.'),
  'max-recall-drop': option.text(
    { value: 'R', default: '0' },
    'Refuse an index whose recall@k is more than R below the index before. 1 accepts any loss, even if neither index finds a judged passage.',
  ),
  records: option.list(
    'FILE',
    'Files of --record (trawl serve). Their recorded queries are compared then, in place of the held-out questions.',
  ),
  'changed-k': option.integer(
    { min: 1, max: 1000, default: 3 },
    'Passages of an answer that are compared. Recorded queries that asked for fewer do not count.',
  ),
  'max-changed': option.text(
    'SHARE',
    'Refuse an index with which more than this share of answers would change: other passages among the first --changed-k, in any order.',
  ),
  'max-replaced': option.text(
    'SHARE',
    'Refuse an index that replaces more than this share of the first --changed-k passages, averaged over the answers.',
  ),
  until: option.choice(
    ITERATION_STEPS,
    'Stop after this step: model (imported), triage (tried), index (built), measures (compared; nothing is published). The same command without it continues.',
  ),
  restart: option.flag('Discard an unfinished iteration, and begin anew.'),
  ...inherited(OVERRIDE_OPTIONS),
  precision: option.choice(
    PRECISIONS,
    'Precision of the model. Default: the precision of the index before if both encoders have one architecture, else the default of trawl model add.',
  ),
  device: DEVICE_OPTION,
  'share-weights': SHARE_WEIGHTS_OPTION,
  'encoder-threads': TRIAGE_OPTIONS['encoder-threads'],
  'search-threads': RETRIEVER_OPTIONS['search-threads'],
  'search-device': RETRIEVER_OPTIONS['search-device'],
  'shard-rows': BUILD_OPTIONS['shard-rows'],
  'checkpoint-seconds': BUILD_OPTIONS['checkpoint-seconds'],
} as const satisfies OptionTable;

export const ITERATE_OPTIONS = {
  root: option.text('DIR', 'The folder of the iterations. Servers are started with DIR/current. Required.'),
  ...RUN_OPTIONS,
  ...SERVER_OPTIONS,
  ...ACTION_OPTIONS,
} as const satisfies OptionTable;

export type IterateOptions = OptionValues<typeof ITERATE_OPTIONS>;

const ACTIONS = ['back', 'status', 'prune', 'discard'] as const;
export type IterateAction = (typeof ACTIONS)[number] | 'run';

const COMMON = ['root', 'json', 'quiet', 'config'];
const USED: Readonly<Record<IterateAction, readonly string[]>> = {
  run: [...Object.keys(RUN_OPTIONS), ...Object.keys(SERVER_OPTIONS)],
  back: ['back', 'to', 'server', 'server-folder', 'key-file'],
  status: ['status', 'server', 'key-file'],
  prune: ['prune', 'keep'],
  discard: ['discard'],
};

/** What is to be done: an action, or a run of the given checkpoint. @throws TrawlError USAGE. */
export function iterateAction(
  options: IterateOptions,
  positionals: readonly string[],
  given: ReadonlySet<string>,
): IterateAction {
  const actions = ACTIONS.filter((name) => options[name]);
  const action: IterateAction = actions[0] ?? 'run';
  if (actions.length > 1) throw usageError(`--${actions[0]} and --${actions[1]} are different actions: give one.`);
  if (options.root === undefined)
    throw usageError('--root is missing: the folder of the iterations, such as --root loop.');
  if (action !== 'run' && positionals.length > 0)
    throw usageError(`--${action} takes no checkpoint; ${positionals[0]} was given.`);
  const useless = [...given].find((name) => !USED[action].includes(name) && !COMMON.includes(name));
  if (useless === 'to') throw usageError('--to has no effect without --back.');
  if (useless !== undefined) throw usageError(`--${useless} has no effect with --${action}.`);
  if (!given.has('server')) refuseOptions(given, ['server-folder', 'key-file'], 'without --server');
  if (!given.has('triage')) {
    const ofTriage = [...given].filter((name) => name.startsWith('triage-'));
    refuseOptions(given, ofTriage, 'without --triage');
    if (options.until === 'triage') throw usageError('--until triage has no effect without --triage.');
  }
  if (action !== 'run') return action;
  if (positionals.length === 0) {
    throw usageError(
      '<checkpoint> is missing: the folder that the trainer wrote. Or one of --back, --status, --prune, --discard.',
    );
  }
  if (options.corpus.length === 0)
    throw usageError('--corpus is missing: the files of the corpus, as for trawl index.');
  if (options.eval === undefined)
    throw usageError('--eval is missing: held-out questions with gold_ids, as for trawl eval.');
  return 'run';
}

import { usageError } from '../../src/base/errors.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import { PRECISIONS } from '../../src/encoder/identity/model-identity.ts';
import { DEFAULT_SERVER_CONFIG } from '../../src/server/server-config.ts';
import type { Gate } from '../../training/triage/triage-report.ts';
import { DEVICE_OPTION, OVERRIDE_OPTIONS, SHARE_WEIGHTS_OPTION } from '../model/model-options.ts';
import { FILTER_OPTION } from '../options/filter-option.ts';
import { shareOption } from '../options/numbers.ts';
import * as option from '../options/option.ts';
import { QUERY_FORM_OPTION, QUERY_TEMPLATE_OPTION } from '../options/query-form.ts';
import { RETRIEVER_OPTIONS } from '../options/retriever-options.ts';
import { VIEW_OPTIONS } from '../options/view-options.ts';

// Both models are asked with the same template.
const { 'query-template': _, ...TRIED_OPTIONS } = OVERRIDE_OPTIONS;

export const TRIAGE_OPTIONS = {
  queries: option.text(
    'FILE|DIR',
    'Held-out questions as JSON lines: {"id", "question", "query"?, "history_queries"?, "gold_ids"?}, or in one of the other formats of `trawl eval`, such as a folder of BEIR (docs/evaluation.md). Required.',
  ),
  qrels: option.text('FILE', 'Judgements (TREC qrels or BEIR tsv) to use instead of gold_ids.'),
  index: option.list(
    '[NAME=]DIR',
    'The index of another generation, whose first hits join the pool, too: those that this index has by id. Repeat the option for several.',
  ),
  records: option.list(
    'FILE',
    'Recorded hits of these files of `trawl serve --record` and their rotated files join the pool, too, if their query belongs to a question of --queries. Repeat the option for several files.',
  ),
  'also-bm25': option.flag('The first hits of BM25 in this index join the pool, too.'),
  depth: option.integer(
    { min: 1, max: DEFAULT_SERVER_CONFIG.maxK, default: 100 },
    'Hits of each question and list that join the pool. A deeper pool costs more embedding and makes the estimate better, if the new model resembles the earlier ones.',
  ),
  sample: option.integer(
    { min: 0, default: 20_000 },
    'Random passages of the rest of the index that join the pool. The estimate counts how many of them are nearer than the relevant ones. A larger sample makes it better. 0: there is only an upper bound.',
  ),
  seed: option.integer({ min: 0, default: 0 }, 'Seed of the random passages and of the intervals.'),
  cutoffs: option.text({ value: 'K,K,…', default: '1,5,10' }, 'The values of k of recall@k.'),
  'min-recall': option.text('R', 'Refuse the model if its estimated recall is less than R, from 0 to 1.'),
  'max-drop': option.text(
    'R',
    "Refuse the model if its estimated recall is more than R below the recall of the index's encoder in the whole index. 0: it must not be worse.",
  ),
  'gate-k': option.integer(
    { min: 1 },
    'The k whose recall --min-recall and --max-drop look at; one of --cutoffs. Default: the largest.',
  ),
  work: option.text(
    'DIR',
    'Folder for the vectors of the pool, from which a stopped run resumes. Default: the path of the index with .triage at its end.',
  ),
  'keep-vectors': option.flag(
    'Keep the vectors of the pool, and the imported model, in the work folder, so that a further run with other cutoffs or another gate embeds nothing. Default: they are removed.',
  ),
  'checkpoint-seconds': option.integer(
    { min: 0, max: 86_400, default: 5 },
    'Seconds between two checkpoints of the vectors, which is the work that a killed run can lose. 0: after every batch of 256 passages.',
  ),
  'query-form': QUERY_FORM_OPTION,
  'query-template': {
    ...QUERY_TEMPLATE_OPTION,
    help: "Which of question, history and query are embedded, by both models. Default: each model's own, else question-query.",
  },
  filter: FILTER_OPTION,
  ...VIEW_OPTIONS,
  'index-model': option.text(
    'NAME|DIR',
    'The encoder of the index: a name in models/ or the path of a model folder. It must be the model that the index was built with. Default: the folder recorded in the index, else the name.',
  ),
  precision: option.choice(
    PRECISIONS,
    "Precision of the model that is tried. Default: its folder's; float32 for a checkpoint.",
  ),
  ...TRIED_OPTIONS,
  device: DEVICE_OPTION,
  'share-weights': SHARE_WEIGHTS_OPTION,
  'encoder-threads': {
    ...RETRIEVER_OPTIONS['encoder-threads'],
    help: 'Threads that embed. Default: the cores available to this process.',
  },
  'search-threads': RETRIEVER_OPTIONS['search-threads'],
  'search-device': RETRIEVER_OPTIONS['search-device'],
} as const satisfies OptionTable;

export type TriageValues = OptionValues<typeof TRIAGE_OPTIONS>;

/** @throws TrawlError USAGE. */
export function gateOf(options: TriageValues, cutoffs: readonly number[]): Gate {
  const k = options['gate-k'] ?? cutoffs.at(-1)!;
  if (!cutoffs.includes(k)) {
    throw usageError(`--gate-k is ${k}, which is none of --cutoffs ${cutoffs.join(',')}.`);
  }
  const gate = {
    k,
    minRecall: shareOption(options, 'min-recall') ?? null,
    maxDrop: shareOption(options, 'max-drop') ?? null,
  };
  if (options['gate-k'] !== undefined && gate.minRecall === null && gate.maxDrop === null) {
    throw usageError('--gate-k has no effect without --min-recall or --max-drop.');
  }
  return gate;
}

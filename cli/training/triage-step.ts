import { isDeepStrictEqual } from 'node:util';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import type { IterationWork, StepFolders } from '../../training/iteration/iteration-work.ts';
import type { Journal, Trial } from '../../training/iteration/records.ts';
import { triageModel } from '../../training/triage/triage-model.ts';
import type { TriageReport } from '../../training/triage/triage-report.ts';
import { queryOf } from '../../evaluation/query-form.ts';
import { machineOptions } from '../options/retriever-options.ts';
import { stepProgress } from '../output/progress/step-progress.ts';
import { openIterationEncoder } from './open-iteration-encoder.ts';
import { shownProgress } from './triage-progress.ts';
import type { WorkContext } from './work-context.ts';

/** Seed of the random passages: a trial that is repeated has the same pool. */
const SEED = 0;

/** The trial of an iteration, done by the function of `trawl triage` on the served index and the held-out questions. */
export function triageStep(context: WorkContext): NonNullable<IterationWork['triage']> {
  const settings = settingsOf(context);
  return {
    run: async (folders, journal) => trialOf(await tryModel(context, folders, journal), settings),
    isTried: (trial) => isDeepStrictEqual(trial.settings, settings),
  };
}

/** What the figures depend on besides the model and the index. */
function settingsOf({ options, measurement }: WorkContext): Trial['settings'] {
  const { questions, qrels, form, recallK } = measurement.settings;
  const { 'triage-depth': depth, 'triage-sample': sample, 'triage-also-bm25': alsoBm25 } = options;
  return { questions, qrels, form, recallK, depth, sample, alsoBm25 };
}

async function tryModel(
  { options, measurement, signal, note }: WorkContext,
  folders: StepFolders,
  { model }: Journal,
): Promise<TriageReport> {
  const k = options['recall-k'];
  const progress = stepProgress({ silent: options.quiet || options.json });
  const retriever = await openRetriever(folders.base, { ...machineOptions(options), signal, onWarning: note });
  try {
    const encoder = await openIterationEncoder({ options, note }, folders.model, model!);
    try {
      return await triageModel({
        retriever,
        passageTemplate: readIndexManifest(folders.base).corpus.passageTemplate,
        others: [],
        records: [],
        alsoBm25: options['triage-also-bm25'],
        encoder,
        questions: measurement.questions,
        judgements: measurement.judgements,
        inputOf: (question) => queryOf(question, options['query-form']),
        scope: {},
        depth: options['triage-depth'],
        sample: options['triage-sample'],
        seed: SEED,
        cutoffs: [k],
        // The limits of an iteration are compared with what its journal has.
        gate: { k, minRecall: null, maxDrop: null },
        work: folders.triage,
        // They are removed once the journal has the result.
        keepVectors: true,
        searchThreads: options['search-threads'],
        checkpointMs: 1000 * options['checkpoint-seconds'],
        onProgress: (state) => progress.update(shownProgress(state)),
        onWarning: note,
        signal,
      });
    } finally {
      await encoder.close();
    }
  } finally {
    progress.stop();
    await retriever.close();
  }
}

function trialOf({ index, questions, passages, recall, times }: TriageReport, settings: Trial['settings']): Trial {
  const [{ k, tried, present }] = recall as [TriageReport['recall'][number]];
  return {
    against: index.generation,
    settings: { ...settings },
    judged: questions.judged,
    k,
    estimate: tried.estimate,
    bound: tried.bound.value,
    present: present.whole.value,
    error: present.asNew === null ? null : present.asNew.estimate - present.whole.value,
    pool: passages.pool,
    whole: passages.whole,
    wholeMs: times.wholeMs,
  };
}

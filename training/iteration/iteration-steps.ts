import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { queryOf } from '../../evaluation/query-form.ts';
import type { BuildOptions } from '../../indexer/building/build.ts';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { currentIndex } from '../../indexer/building/is-current.ts';
import { recordedReading } from '../../indexer/update/last-reading.ts';
import { asUsage, TrawlError } from '../../src/base/errors.ts';
import { formatNumberOf } from '../../src/base/format.ts';
import { isSameJson } from '../../src/base/objects.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import type { ModelOverrides } from '../../src/encoder/model/model-overrides.ts';
import { openEncoder, type RunOptions } from '../../src/encoder/open-encoder.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { type OpenRetrieverOptions, openRetriever } from '../../src/search/opening/open-retriever.ts';
import { type TriageProgress, type TriageReport, triageModel } from '../triage/triage-model.ts';
import { makeModel } from './checkpoint.ts';
import type { IterationWork, StepFolders } from './iteration-work.ts';
import type { IterationMeasurement } from './measure-iteration.ts';
import { inheritedOverrides, inheritedPrecision, poolingOfImport, settingsDiffer } from './model-settings.ts';
import type { Journal, Trial } from './records.ts';

/** Shows the progress of one step until it is stopped. */
export interface ShownStep<Progress> {
  update(progress: Progress): void;
  stop(): void;
}

/** What the steps of an iteration are done with. */
export interface IterationSettings {
  /** Absolute. */
  readonly checkpoint: string;
  readonly measurement: IterationMeasurement;
  /** Undefined: as `inheritedPrecision`. */
  readonly precision: Precision | undefined;
  /** Settings of the model that are not inherited. */
  readonly overrides: ModelOverrides;
  readonly encoder: RunOptions;
  readonly corpus: readonly string[];
  readonly building: Pick<BuildOptions, 'kernel' | 'shardRows' | 'checkpointMs'>;
  /** The trial of the model; undefined: there is none. */
  readonly triage:
    | {
        readonly depth: number;
        readonly sample: number;
        readonly alsoBm25: boolean;
        readonly searching: OpenRetrieverOptions;
      }
    | undefined;
  readonly show: {
    readonly model: () => ShownStep<{ readonly stage: string; readonly done: number; readonly total: number }>;
    readonly triage: () => ShownStep<TriageProgress>;
    readonly index: () => ShownStep<Parameters<BuildOptions['onProgress']>[0]>;
  };
  readonly note: (text: string) => void;
  readonly signal: AbortSignal;
}

/** The steps of an iteration, done by the functions of `trawl model add`, `triage`, `index`, `eval` and `replay`. */
export function iterationSteps(settings: IterationSettings): IterationWork {
  const { measurement, triage } = settings;
  return {
    model: (folders, journal) => modelStep(settings, folders, journal),
    triage: triage === undefined ? undefined : triageStep(settings, triage),
    index: (folders, journal) => indexStep(settings, folders, journal),
    measure: ({ base, index }) => measurement.measure(base, index),
    isMeasured: (measures) => measurement.covers(measures),
  };
}

async function modelStep(
  { checkpoint, precision: given, overrides: own, show, signal }: IterationSettings,
  folders: StepFolders,
  { inputs }: Journal,
): Promise<NonNullable<Journal['model']>> {
  const { model: base } = readIndexManifest(folders.base);
  const wanted = given ?? (await inheritedPrecision(checkpoint, base));
  const progress = show.model();
  try {
    await makeModel({
      checkpoint,
      files: inputs.checkpointFiles,
      out: folders.model,
      precision: wanted,
      pooling: await poolingOfImport(checkpoint, { given: own.pooling, base }),
      signal,
      onProgress: progress.update,
    });
  } finally {
    progress.stop();
  }
  const overrides = { ...(await inheritedOverrides(checkpoint, folders.model, base)), ...own };
  const { identity } = await asUsage(readModelFolder(folders.model, overrides, { precision: wanted }));
  const { name, precision } = identity;
  return { name, precision, overrides, changes: settingsDiffer(base, identity) };
}

function openModel(
  { encoder, note }: IterationSettings,
  folders: StepFolders,
  { precision, overrides }: NonNullable<Journal['model']>,
): Promise<TextEncoder> {
  return openEncoder(folders.model, { ...encoder, precision, overrides: overrides as ModelOverrides, onWarning: note });
}

/** Seed of the random passages: a trial that is repeated has the same pool. */
const SEED = 0;

type TriageSettings = NonNullable<IterationSettings['triage']>;

/** The trial of an iteration, done by the function of `trawl triage` on the served index and the held-out questions. */
function triageStep(settings: IterationSettings, triage: TriageSettings): NonNullable<IterationWork['triage']> {
  // What the figures depend on besides the model and the index.
  const { questions, qrels, form, recallK } = settings.measurement.settings;
  const { depth, sample, alsoBm25 } = triage;
  const decisive = { questions, qrels, form, recallK, depth, sample, alsoBm25 };
  return {
    run: async (folders, journal) => trialOf(await tryModel(settings, triage, folders, journal), decisive),
    isTried: (trial) => isSameJson(trial.settings, decisive),
  };
}

async function tryModel(
  settings: IterationSettings,
  { depth, sample, alsoBm25, searching }: TriageSettings,
  folders: StepFolders,
  { model }: Journal,
): Promise<TriageReport> {
  const { measurement, building, show, signal, note } = settings;
  const { questions, judgements } = measurement;
  const { form, recallK: k } = measurement.options;
  const progress = show.triage();
  const retriever = await openRetriever(folders.base, { ...searching, signal, onWarning: note });
  try {
    const encoder = await openModel(settings, folders, model!);
    try {
      return await triageModel({
        retriever,
        passageTemplate: readIndexManifest(folders.base).corpus.passageTemplate,
        others: [],
        records: [],
        alsoBm25,
        encoder,
        questions,
        judgements,
        inputOf: (question) => queryOf(question, form),
        scope: {},
        depth,
        sample,
        seed: SEED,
        cutoffs: [k],
        // The limits of an iteration are compared with what its journal has.
        gate: { k, minRecall: null, maxDrop: null },
        work: folders.triage,
        // They are removed once the journal has the result.
        keepVectors: true,
        searchThreads: searching.searchThreads,
        checkpointMs: building.checkpointMs,
        onProgress: progress.update,
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

async function indexStep(
  settings: IterationSettings,
  folders: StepFolders,
  { model }: Journal,
): Promise<NonNullable<Journal['index']>> {
  const { corpus, building, show, note, signal } = settings;
  const base = readIndexManifest(folders.base);
  const content = {
    corpus,
    corpusOptions: recordedReading(folders.base, base),
    uniqueIds: false,
    passageTemplate: base.corpus.passageTemplate,
    bm25: base.bm25?.made,
    columns: base.columns,
  };
  const encoder = await openModel(settings, folders, model!);
  try {
    // A run was killed before it recorded this step, or jobs built the shards and `trawl merge` joined them.
    if (existsSync(join(folders.index, INDEX_MANIFEST_FILE))) {
      const built = await currentIndex(folders.index, { ...content, encoder });
      if (built !== undefined) return indexFacts(built, base, note);
      throw new TrawlError(
        'BUILD_DIFFERS',
        `${folders.index} was built with another corpus, model or option than this iteration has. Remove that folder, and run the ` +
          'command again.',
      );
    }
    const progress = show.index();
    try {
      const { manifest } = await buildIndex({
        ...building,
        onProgress: progress.update,
        onNote: note,
        signal,
        ...content,
        encoder,
        modelFolder: folders.model,
        out: folders.index,
        overwrite: false,
      });
      return indexFacts(manifest, base, note);
    } finally {
      progress.stop();
    }
  } finally {
    await encoder.close();
  }
}

function indexFacts(
  { generation, corpus, rows }: IndexManifest,
  base: IndexManifest,
  note: IterationSettings['note'],
): NonNullable<Journal['index']> {
  const sums = (files: IndexManifest['corpus']['files']): string[] => files.map(({ sha256 }) => sha256);
  const sameFiles = isSameJson(sums(corpus.files), sums(base.corpus.files));
  const back = rows - (base.rows - (base.tombstones?.rows ?? 0));
  if (sameFiles && back > 0) {
    note(
      `${formatNumberOf(back, 'passage')} that the index before no longer had, because of trawl remove, came back from the corpus files. ` +
        KEEP_OUT,
    );
  } else if (!sameFiles && base.lastUpdate?.kind === 'remove') {
    note(`Passages were removed from the index before. Those that the corpus files still have came back. ${KEEP_OUT}`);
  }
  return { generation, sameCorpus: sameFiles && back === 0 };
}

const KEEP_OUT =
  'To keep them out, remove them from the files; or build with --until index, use trawl remove on the new index, and run the command again.';

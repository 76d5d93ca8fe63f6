import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { currentIndex } from '../../indexer/building/is-current.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { isSameJson } from '../../src/base/objects.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { makeModel } from '../../training/iteration/checkpoint.ts';
import type { IterationWork, StepFolders } from '../../training/iteration/iteration-work.ts';
import {
  inheritedOverrides,
  inheritedPrecision,
  poolingOfImport,
  settingsDiffer,
} from '../../training/iteration/model-settings.ts';
import type { Journal } from '../../training/iteration/records.ts';
import { buildProgress } from '../building/build-progress.ts';
import { recordedReading } from '../building/recorded-reading.ts';
import { sharedBuildOptions } from '../building/run-build.ts';
import { asUsage, givenOverrides } from '../model/model-options.ts';
import { formatNumberOf } from '../output/format.ts';
import { modelProgress } from '../output/progress/model-progress.ts';
import { openIterationEncoder } from './open-iteration-encoder.ts';
import { triageStep } from './triage-step.ts';
import type { WorkContext } from './work-context.ts';

/** The steps of an iteration, done by the functions of `trawl model add`, `index`, `eval` and `replay`. */
export function iterationWork(context: WorkContext): IterationWork {
  const { measurement } = context;
  return {
    model: (folders, journal) => modelStep(context, folders, journal),
    ...(context.options.triage ? { triage: triageStep(context) } : {}),
    index: (folders, journal) => indexStep(context, folders, journal),
    measure: ({ base, index }) => measurement.measure(base, index),
    isMeasured: (measures) => measurement.covers(measures),
  };
}

async function modelStep(
  { options, checkpoint, signal }: WorkContext,
  folders: StepFolders,
  { inputs }: Journal,
): Promise<NonNullable<Journal['model']>> {
  const { model: base } = readIndexManifest(folders.base);
  const wanted = options.precision ?? (await inheritedPrecision(checkpoint, base));
  const progress = modelProgress({ silent: options.quiet || options.json });
  try {
    await makeModel({
      checkpoint,
      files: inputs.checkpointFiles,
      out: folders.model,
      precision: wanted,
      pooling: await poolingOfImport(checkpoint, { given: options.pooling, base }),
      signal,
      onProgress: progress.step,
    });
  } finally {
    progress.stop();
  }
  const overrides = {
    ...(await inheritedOverrides(checkpoint, folders.model, base)),
    ...givenOverrides(options),
  };
  const { identity } = await asUsage(readModelFolder(folders.model, overrides, { precision: wanted }));
  const { name, precision } = identity;
  return { name, precision, overrides, changes: settingsDiffer(base, identity) };
}

async function indexStep(
  { options, signal, out, note }: WorkContext,
  folders: StepFolders,
  { model }: Journal,
): Promise<NonNullable<Journal['index']>> {
  const base = readIndexManifest(folders.base);
  const content = {
    corpus: options.corpus,
    corpusOptions: recordedReading(folders.base, base),
    uniqueIds: false,
    passageTemplate: base.corpus.passageTemplate,
    bm25: base.bm25?.made,
    columns: base.columns,
  };
  const encoder = await openIterationEncoder({ options, note }, folders.model, model!);
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
    const progress = buildProgress({ silent: options.quiet, json: options.json });
    try {
      const settings = { ...options, restart: false, plan: false, 'unique-ids': false };
      const { manifest } = await buildIndex({
        ...sharedBuildOptions(settings, progress, { signal, out, note }),
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
  note: WorkContext['note'],
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

import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import { buildForecast } from '../../evaluation/speed/search-forecast.ts';
import { recordedReading } from '../../indexer/update/last-reading.ts';
import { planUpdate } from '../../indexer/update/plan-update.ts';
import { type UpdateOptions, updateIndex } from '../../indexer/update/update-index.ts';
import { usageError } from '../../src/base/errors.ts';
import type { OptionValues } from '../../src/base/options/option-spec.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { isServerUrl } from '../../src/encoder/model-server/server-url.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { UpdateType } from '../../src/index/manifest/build-records.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { recordedModel, recordedOverrides } from '../../src/search/opening/open-index-encoder.ts';
import { type ENDPOINT_OPTIONS, endpointOptions } from '../model/endpoint-options.ts';
import { givenOverrides, OVERRIDE_OPTIONS, shareWeights } from '../model/model-options.ts';
import { EXIT } from '../program/command.ts';
import type { BUILD_OPTIONS } from './build-options.ts';
import { jsonUpdateSummary, textUpdateSummary } from './build-summary.ts';
import { openedForBuild } from './opened-for-build.ts';
import { printPlan, sharedBuildOptions, withProgress } from './run-build.ts';

export interface UpdateRun {
  readonly type: UpdateType;
  readonly folder: string;
  readonly corpus: readonly string[];
  readonly corpusOptions: CorpusOptions;
  readonly options: OptionValues<typeof BUILD_OPTIONS & typeof OVERRIDE_OPTIONS & typeof ENDPOINT_OPTIONS> & {
    readonly model: string;
    readonly precision: Precision | undefined;
    readonly device: string;
    readonly 'share-weights': 'auto' | 'yes' | 'no';
    readonly workers: number | undefined;
    readonly 'passage-template': string;
    readonly 'unique-ids': boolean;
    readonly json: boolean;
    readonly quiet: boolean;
  };
  readonly given: ReadonlySet<string>;
  readonly signal: AbortSignal;
  readonly out: (text: string) => void;
  readonly note: (text: string) => void;
}

/** Runs `trawl index --update` or `--append`. Options that are not given have the values of the index. */
export async function runUpdate(run: UpdateRun): Promise<number> {
  const { type, folder, corpus, options, given, out, note } = run;
  const manifest = readIndexManifest(folder);
  checkTemplate(manifest, options['passage-template'], given);
  const encoder = await encoderFor(manifest, run);
  try {
    return await withProgress(options, async (progress) => {
      const update: UpdateOptions = {
        ...sharedBuildOptions(options, progress, run),
        type,
        corpus,
        corpusOptions: { ...run.corpusOptions, ...recordedTsv(folder, manifest, given) },
        encoder,
        out: folder,
      };
      if (options.plan) {
        const plan = await planUpdate(update);
        return printPlan({ plan, search: await buildForecast(plan, update) }, options, progress, out);
      }
      const summary = await updateIndex(update);
      progress.stop();
      if (options.json) out(JSON.stringify(jsonUpdateSummary(summary)));
      else for (const line of textUpdateSummary(summary)) note(line);
      return EXIT.ok;
    });
  } finally {
    await encoder?.close();
  }
}

/** Undefined for an index without vectors. */
function encoderFor(
  manifest: IndexManifest,
  { folder, options, given, signal, note }: UpdateRun,
): Promise<TextEncoder | undefined> {
  const override = Object.keys(OVERRIDE_OPTIONS).find((name) => given.has(name));
  if (override !== undefined && given.has('model') && isServerUrl(options.model)) {
    throw usageError(`--${override} has no effect: an update takes the settings of the index. Omit it.`);
  }
  const { model } = manifest;
  if (model === null) return Promise.resolve(undefined);
  return openedForBuild(
    openEncoder(given.has('model') ? options.model : recordedModel([folder], { ...manifest, model }), {
      workers: options.workers,
      device: options.device,
      shareWeights: shareWeights(options['share-weights']),
      precision: options.precision ?? model.precision ?? undefined,
      endpoint: endpointOptions(options, { forBuild: true }),
      recorded: model,
      signal,
      onWarning: note,
      overrides: { ...recordedOverrides(model), ...givenOverrides(options) },
    }),
  );
}

function checkTemplate({ corpus }: IndexManifest, template: string, given: ReadonlySet<string>): void {
  if (!given.has('passage-template') || template === corpus.passageTemplate) return;
  throw usageError(
    `--passage-template is ${JSON.stringify(template)}, but the index was built with ` +
      `${JSON.stringify(corpus.passageTemplate)}. Omit the option, or build the index again.`,
  );
}

/** The TSV options with which the corpus was read last, unless they are given. The stored documents depend on them. */
function recordedTsv(folder: string, manifest: IndexManifest, given: ReadonlySet<string>): CorpusOptions {
  const { tsvLayout, tsvIdType } = recordedReading(folder, manifest);
  return {
    ...(tsvLayout === undefined || given.has('tsv-layout') ? {} : { tsvLayout }),
    ...(tsvIdType === undefined || given.has('tsv-id-type') ? {} : { tsvIdType }),
  };
}

import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { type ModelFolder, readModelFolder } from '../../src/encoder/model/model-folder.ts';
import { baselinePython } from '../baselines.ts';
import type { BenchCommon } from '../bench-common.ts';
import { loadNow, machineFacts } from '../environment.ts';
import { EngineUnavailable } from '../script-process.ts';
import { type EmbedRecord, runEmbedCase } from './embed-case.ts';
import { type EmbedBaseline, type EmbedEngine, openBaselineEncoder, openTrawlEncoder } from './embed-engine.ts';
import type { EmbedEnvironment } from './embed-report.ts';
import { benchQueries, samplePassages } from './embed-texts.ts';
import { encoderShape } from './encoder-operations.ts';

export interface BenchEmbedOptions extends BenchCommon {
  /** A name in models/, or a folder. */
  readonly model: string;
  /** Graphs of the model to measure, each as an engine of its own. Undefined: the default one. */
  readonly precisions: readonly Precision[] | undefined;
  /** A corpus file. */
  readonly texts: string;
  /** Number of passages drawn from it at random. */
  readonly sample: number;
  /** A file of questions. Undefined: those of the sample corpus. */
  readonly queryTexts: string | undefined;
  readonly against: readonly EmbedBaseline[];
  /** The checkpoint for the baseline. Undefined: the model's own folder, if it has a checkpoint. */
  readonly baselineModel: string | undefined;
  /** Texts in a batch of the baseline. */
  readonly batch: number;
}

export interface BenchEmbedResult {
  readonly environment: EmbedEnvironment;
  readonly model: string;
  /** Where the passages come from. */
  readonly texts: string;
  readonly records: readonly EmbedRecord[];
  readonly skipped: readonly { readonly engine: string; readonly reason: string }[];
}

/** Queries that each run encodes one by one. Five runs make 200, enough for a 99th percentile. */
const QUERIES_PER_RUN = 40;

/** Loads every engine and measures. */
export async function benchEmbed(options: BenchEmbedOptions): Promise<BenchEmbedResult> {
  const { runs, threads, batch, signal, note } = options;
  const loadBefore = loadNow();
  const models = await readModels(options);
  const model = models[0]!.model;
  const passages = await samplePassages(options.texts, { count: options.sample, seed: options.seed, signal });
  const queries = await benchQueries(options.queryTexts, QUERIES_PER_RUN * runs);
  const texts = join(options.scratch, 'texts.json');
  await writeFile(texts, JSON.stringify({ passages, queries }));

  const skipped: { engine: string; reason: string }[] = [];
  const skip = (engine: string, reason: string): void => {
    skipped.push({ engine, reason });
    note(`Skipped ${engine}: ${reason}`);
  };
  const checkpoint = options.baselineModel ?? ownCheckpoint(model);
  const engines: EmbedEngine[] = [];
  const stop = (): void => {
    for (const engine of engines) void engine.close();
  };
  signal.addEventListener('abort', stop);
  try {
    for (const { precision } of models) engines.push(await openTrawl(model.folder, precision, { texts, threads }));
    const baseline = await openBaselines(options, model, checkpoint, texts, skip);
    engines.push(...baseline);
    const matmulGflopPerS = (await baseline[0]?.matmul()) ?? null;
    const shape = await encoderShape(checkpoint ?? model.folder, model.identity.dimension);
    const embedCase = { runs, threads, batch, passages: passages.length, queriesPerRun: QUERIES_PER_RUN, shape };
    const records = await runEmbedCase(embedCase, engines, {
      signal,
      onLost: skip,
      onStep: (step) => note(`measured: ${step}`),
    });
    return {
      environment: { ...machineFacts({ engines, loadBefore }), matmulGflopPerS },
      model: model.identity.name,
      texts: `${passages.length} of ${options.texts}, seed ${options.seed}`,
      records,
      skipped,
    };
  } finally {
    signal.removeEventListener('abort', stop);
    await Promise.all(engines.map((engine) => engine.close()));
  }
}

/** Reads the model description for each precision. */
async function readModels({
  model,
  precisions,
}: BenchEmbedOptions): Promise<{ precision: Precision; model: ModelFolder }[]> {
  if (precisions === undefined) {
    const read = await readModelFolder(model);
    return [{ precision: read.identity.precision, model: read }];
  }
  const models: { precision: Precision; model: ModelFolder }[] = [];
  for (const precision of precisions) {
    models.push({ precision, model: await readModelFolder(model, {}, { precision }) });
  }
  return models;
}

async function openTrawl(
  folder: string,
  precision: Precision,
  load: { texts: string; threads: number },
): Promise<EmbedEngine> {
  try {
    return await openTrawlEncoder(load, folder, precision);
  } catch (cause) {
    if (!(cause instanceof EngineUnavailable)) throw cause;
    throw new TrawlError('MODEL_INVALID', `${folder}: ${cause.message}`, { cause });
  }
}

/** The model's own folder, if it has the checkpoint too. */
function ownCheckpoint({ folder }: ModelFolder): string | undefined {
  return existsSync(join(folder, 'model.safetensors')) ? folder : undefined;
}

async function openBaselines(
  { against, python, cache, threads, batch, signal }: BenchEmbedOptions,
  { identity }: ModelFolder,
  checkpoint: string | undefined,
  texts: string,
  skip: (engine: string, reason: string) => void,
): Promise<EmbedEngine[]> {
  const interpreter = python ?? baselinePython(cache, 'embed');
  const opened: EmbedEngine[] = [];
  for (const name of against) {
    if (signal.aborted) break;
    if (interpreter === undefined) skip(name, 'no Python environment: run trawl bench baselines embed');
    else if (checkpoint === undefined) skip(name, 'its checkpoint is unknown: give its folder with --baseline-model');
    else if (!existsSync(checkpoint)) skip(name, `the folder ${checkpoint} does not exist`);
    else {
      const { prefixes, maxTokens } = identity;
      try {
        const options = {
          python: interpreter,
          threads,
          texts,
          model: resolve(checkpoint),
          queryPrefix: prefixes.query,
          passagePrefix: prefixes.passage,
          maxQueryTokens: maxTokens.query,
          maxPassageTokens: maxTokens.passage,
          batch,
        };
        opened.push(await openBaselineEncoder(name, options));
      } catch (error) {
        if (!(error instanceof EngineUnavailable)) throw error;
        skip(name, error.message);
      }
    }
  }
  return opened;
}

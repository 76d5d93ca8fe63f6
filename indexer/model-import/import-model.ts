import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { asTrawlError, isNodeError, TrawlError } from '../../src/base/errors.ts';
import { defined } from '../../src/base/objects.ts';
import { syncFolder, writeJsonDurably } from '../../src/base/system/durable-file.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { PRECISIONS, type Precision } from '../../src/encoder/identity/model-identity.ts';
import type { Int8Runner } from '../../src/encoder/inference/int8-runner.ts';
import { invalidConfig, invalidModel, type JsonObject, readJsonFile } from '../../src/encoder/model/json-file.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import { STATED_POOLINGS, type StatedPooling } from '../../src/encoder/model/transformers-folder.ts';
import {
  graphsOf,
  TRAWL_MODEL_FILE,
  TRAWL_MODEL_VERSION,
  type TrawlModelFile,
  type TrawlModelGraph,
} from '../../src/encoder/model/trawl-model-file.ts';
import { openModelEncoder } from '../../src/encoder/open-encoder.ts';
import { isSupportedArchitecture } from './architectures.ts';
import { checkCheckpoint } from './checkpoint-kind.ts';
import { readImportSource } from './import-source.ts';
import { withModelLock } from './model-lock.ts';
import type { ModelPlan } from './model-plan.ts';
import { planCheckpoint } from './plan-checkpoint.ts';
import { checkGraphConfigs, findOnnx, planOnnx } from './plan-onnx.ts';

/** Where a model came from; recorded in its description. */
export interface ModelSource {
  readonly kind: 'folder' | 'hub';
  /** Repository id on the hub, or name of the folder. */
  readonly id: string;
  readonly revision?: string;
  readonly files?: { path: string; bytes: number; sha256: string }[];
}

interface ImportProgress {
  /** `read` (checksums of the source), `write <precision>` or `check <precision>`. */
  readonly stage: string;
  /** Bytes for `write`, files for `read`, graphs for `check`; so is `total`. */
  readonly done: number;
  readonly total: number;
}

export interface ImportOptions {
  /** The model folder to create. It must not exist. */
  readonly out: string;
  /** Name of the model. Default: the source's id, else the name of the source folder. */
  readonly name?: string;
  /** Precisions of the graphs; the first is the model's default. Default: float32 and int8, or the precision of the source's graph. */
  readonly precisions?: readonly Precision[];
  /** What is to run an encoder in int8. Default: the engine, if it computes the model and is fast on this machine; else onnxruntime. */
  readonly int8?: Int8Runner;
  /**
   * The pooling of an encoder whose checkpoint states none. It also says that the checkpoint is an encoder although its class is another
   * kind of model, and takes the encoder under the head of a late-interaction model.
   */
  readonly pooling?: StatedPooling;
  /** Where the checkpoint came from. Default: the source folder. Its id helps to recognise the model family. */
  readonly source?: ModelSource;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: ImportProgress) => void;
}

export interface ImportedModel {
  /** Absolute. */
  readonly folder: string;
  readonly description: TrawlModelFile;
  readonly remarks: readonly string[];
}

const DEFAULT_PRECISIONS: readonly Precision[] = ['float32', 'int8'];

/**
 * Makes a model folder from a checkpoint folder with weights in safetensors or an exported ONNX graph.
 *
 * Checks config, tensor headers and tokenizer before it writes anything. Writes to `<out>.partial`, runs every graph on a
 * short text, then renames the folder to `out`, so `out` is complete whenever it exists.
 *
 * Throws MODEL_NOT_FOUND, MODEL_INVALID, MODEL_LOCKED, CONFIG_INVALID (for `precisions` and `pooling`), OUTPUT_NOT_WRITABLE, DISK_FULL or
 * CANCELLED.
 */
export async function importModel(sourceFolder: string, options: ImportOptions): Promise<ImportedModel> {
  const source = resolve(sourceFolder);
  const out = resolve(options.out);
  checkChoices(options);
  await checkFolders(source, out);
  const plan = await makePlan(source, options);
  try {
    // Two imports to the same folder would delete each other's files.
    const message = `Another process is writing ${out}. Wait for it, stop it, or choose another name.`;
    return await withModelLock(`${out}.lock`, { message, folder: out }, () => writeFolder(plan, source, out, options));
  } finally {
    await plan.close();
  }
}

async function writeFolder(
  plan: ModelPlan,
  source: string,
  out: string,
  options: ImportOptions,
): Promise<ImportedModel> {
  const partial = `${out}.partial`;
  try {
    await makeFolder(partial);
    const description = await writeModel(plan, source, partial, options);
    await tryGraphs(partial, description, options);
    throwIfCancelled(options.signal);
    await rename(partial, out);
    await syncFolder(dirname(out));
    return { folder: out, description, remarks: plan.remarks };
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw asTrawlError(error);
  }
}

async function makePlan(
  folder: string,
  { source: origin, precisions, int8, pooling }: ImportOptions,
): Promise<ModelPlan> {
  await refuseAdapter(folder);
  const source = await readImportSource(folder, origin === undefined ? [] : [origin.id], pooling);
  const graph = findOnnx(source.transformer);
  const safetensors = ['model.safetensors', 'model.safetensors.index.json'].some((name) =>
    existsSync(join(source.transformer, name)),
  );
  return graph !== undefined && usesGraph(source.config, safetensors)
    ? planOnnx(source, graph, precisions)
    : planCheckpoint(source, precisions ?? DEFAULT_PRECISIONS, int8);
}

/** Whether an ONNX graph that a checkpoint has is copied, because it has no safetensors or the import makes no graph of its architecture. */
function usesGraph({ model_type: modelType }: JsonObject, hasSafetensors: boolean): boolean {
  return !(hasSafetensors && isSupportedArchitecture(modelType));
}

/**
 * Checks the config files of a checkpoint before its weights are downloaded. Returns whether an ONNX graph would be used in place of
 * the safetensors files.
 *
 * @param formats of the weights that the source has.
 * @throws the errors of `importModel` about the kind of the model, the precisions and the pooling.
 */
export async function checkBeforeWeights(
  folder: string,
  names: readonly string[],
  { precisions, pooling }: Pick<ImportOptions, 'precisions' | 'pooling'>,
  formats: { readonly safetensors: boolean; readonly graph: boolean },
): Promise<boolean> {
  const source = await readImportSource(folder, names, pooling);
  const graphFirst = formats.graph && usesGraph(source.config, formats.safetensors);
  if (graphFirst) await checkGraphConfigs(source);
  else await checkCheckpoint(source, precisions ?? DEFAULT_PRECISIONS);
  return graphFirst;
}

/** Throws MODEL_INVALID for the folder of an adapter (LoRA), which has only the changes of another model's weights. */
async function refuseAdapter(source: string): Promise<void> {
  const path = join(source, 'adapter_config.json');
  if (existsSync(join(source, 'config.json')) || !existsSync(path)) return;
  const { base_model_name_or_path: base } = await readJsonFile(path);
  throw invalidModel(
    `${source} has an adapter (LoRA) of ${JSON.stringify(base ?? 'another model')}, not a whole model. Merge it into that model with Python's peft: ` +
      'model.merge_and_unload().save_pretrained(FOLDER). Save the tokenizer and 1_Pooling there too, and add FOLDER.',
  );
}

async function writeModel(
  plan: ModelPlan,
  source: string,
  folder: string,
  { signal, onProgress, name, source: origin }: ImportOptions,
): Promise<TrawlModelFile> {
  const graphs: TrawlModelGraph[] = [];
  for (const { precision, output, write } of plan.graphs) {
    const stage = `write ${precision}`;
    const written = await write(folder, { signal, onProgress: (done, total) => onProgress?.({ stage, done, total }) });
    const externalData = written.externalData.length === 0 ? undefined : [...written.externalData];
    graphs.push(defined({ path: written.path, precision, output, externalData }));
  }
  await plan.writeTokenizer(join(folder, 'tokenizer.json'));
  const paths = [...graphs.flatMap((graph) => [graph.path, ...(graph.externalData ?? [])]), 'tokenizer.json'];
  const files: TrawlModelFile['files'] = [];
  for (const path of paths) {
    const whole = join(folder, path);
    files.push({ path, bytes: (await stat(whole)).size, sha256: await sha256OfFile(whole, signal) });
  }
  const { facts, poolingFrom, maxPositions, labels, activation, pairTemplate } = plan;
  const description = defined<TrawlModelFile>({
    format: 'trawl-model',
    version: TRAWL_MODEL_VERSION,
    name: name ?? origin?.id ?? basename(source),
    kind: plan.kind,
    architecture: facts.architecture,
    dimension: facts.dimension,
    pooling: facts.pooling,
    poolingFrom,
    normalize: facts.normalize,
    similarity: facts.similarity,
    prefixes: { ...facts.prefixes },
    maxTokens: { ...facts.maxTokens },
    maxPositions,
    labels,
    activation,
    pairTemplate,
    beforeTruncation: facts.beforeTruncation,
    graph: graphs[0]!,
    graphs,
    tokenizer: { path: 'tokenizer.json' },
    batchInvariant: facts.batchInvariant,
    weightsSha256: await weightsSha256(plan.weightFiles, signal, onProgress),
    source: { ...(origin ?? { kind: 'folder', id: basename(source) }) },
    files,
  });
  await writeJsonDurably(join(folder, TRAWL_MODEL_FILE), description);
  return description;
}

/** SHA-256 of the concatenated hexadecimal checksums of `files`. */
async function weightsSha256(
  files: readonly string[],
  signal: AbortSignal | undefined,
  onProgress: ImportOptions['onProgress'],
): Promise<string> {
  const sums: string[] = [];
  for (const file of files) {
    sums.push(await sha256OfFile(file, signal));
    onProgress?.({ stage: 'read', done: sums.length, total: files.length });
  }
  return hash('sha256', sums.join(''));
}

/** Loads every graph as the server does and embeds a text. The encoder checks that shapes fit and values are finite. */
async function tryGraphs(folder: string, description: TrawlModelFile, options: ImportOptions): Promise<void> {
  for (const { precision } of graphsOf(description)) {
    throwIfCancelled(options.signal);
    const model = await readModelFolder(folder, {}, { precision, kind: description.kind });
    const encoder = await openModelEncoder({ model, workers: 1 });
    try {
      const [outcome] = (await encoder.encode(['a short text'], { inputType: 'passage' })).outcomes;
      if (outcome?.ok === false) {
        throw invalidModel(`The imported ${precision} graph fails on a test text: ${outcome.error.message}`, {
          cause: outcome.error,
        });
      }
    } finally {
      await encoder.close();
    }
    options.onProgress?.({ stage: `check ${precision}`, done: 1, total: 1 });
  }
}

function checkChoices({ precisions = DEFAULT_PRECISIONS, pooling }: ImportOptions): void {
  const areKnown = precisions.every((precision) => PRECISIONS.includes(precision));
  if (precisions.length === 0 || !areKnown || new Set(precisions).size < precisions.length) {
    throw invalidConfig(
      `precisions is ${precisions.join(', ') || 'empty'}; it must be one or more of ${PRECISIONS.join(', ')}, each at most once.`,
    );
  }
  if (pooling === undefined || STATED_POOLINGS.includes(pooling)) return;
  throw invalidConfig(`pooling is ${JSON.stringify(pooling)}; it must be one of ${STATED_POOLINGS.join(', ')}.`);
}

async function checkFolders(source: string, out: string): Promise<void> {
  try {
    if (!(await stat(source)).isDirectory()) throw notAFolder(source, 'it is a file');
  } catch (error) {
    if (error instanceof TrawlError || !isNodeError(error)) throw error;
    throw notAFolder(source, error.code === 'ENOENT' ? 'it does not exist' : error.message, error);
  }
  if (existsSync(out)) {
    throw new TrawlError('OUTPUT_NOT_WRITABLE', `${out} already exists. Remove it or choose another name.`);
  }
}

function notAFolder(source: string, reason: string, cause?: unknown): TrawlError {
  return new TrawlError(
    'MODEL_NOT_FOUND',
    `Cannot open the folder ${source}: ${reason}. Expected the folder of a checkpoint, with config.json, weights and tokenizer.json; ` +
      'a repository on the Hugging Face hub is ORGANISATION/NAME.',
    { cause },
  );
}

/** Creates an empty folder. Deletes what a killed import left in it. */
async function makeFolder(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
    await mkdir(path, { recursive: true });
  } catch (error) {
    throw new TrawlError('OUTPUT_NOT_WRITABLE', `Cannot create ${path}: ${(error as Error).message}.`, {
      cause: error,
    });
  }
}

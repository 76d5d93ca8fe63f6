import { existsSync } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { asTrawlError, isNodeError, TrawlError } from '../../src/base/errors.ts';
import { syncFolder, writeJsonDurably } from '../../src/base/system/durable-file.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { FileLock } from '../../src/base/system/file-lock.ts';
import { PRECISIONS, type Precision } from '../../src/encoder/identity/model-identity.ts';
import type { Int8Runner } from '../../src/encoder/inference/int8-runner.ts';
import { readJsonFile } from '../../src/encoder/model/json-file.ts';
import { sha256OfText } from '../../src/encoder/model/model-checksum.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import { STATED_POOLINGS, type StatedPooling } from '../../src/encoder/model/transformers-folder.ts';
import {
  graphsOf,
  TRAWL_MODEL_FILE,
  TRAWL_MODEL_VERSION,
  type TrawlModelFile,
  type TrawlModelGraph,
} from '../../src/encoder/model/trawl-model-file.ts';
import { ModelEncoder } from '../../src/encoder/model-encoder.ts';
import { isSupportedArchitecture } from './architectures.ts';
import { checkConfigs } from './checkpoint-kind.ts';
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
  /**
   * Precisions of the graphs; the first is the model's default. Default: float32 and int8. A source with an ONNX graph
   * keeps the precision of that graph.
   */
  readonly precisions?: readonly Precision[];
  /** What is to run an encoder in int8. Default: the engine, if it computes the model and is fast on this machine; else onnxruntime. */
  readonly int8?: Int8Runner;
  /**
   * The pooling of an encoder whose checkpoint states none. It also says that the checkpoint is an encoder, where its class is that of
   * another model, and takes the encoder under the head of a late-interaction model.
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
  /** What the user should know about the choice of graphs. */
  readonly remarks: readonly string[];
}

const DEFAULT_PRECISIONS: readonly Precision[] = ['float32', 'int8'];

/**
 * Makes a model folder from a checkpoint folder, which holds a BERT-family model in safetensors or an exported ONNX graph.
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
  checkPrecisions(options.precisions);
  checkPooling(options.pooling);
  await checkFolders(source, out);
  const plan = await makePlan(source, options);
  const partial = `${out}.partial`;
  let lock: FileLock | undefined;
  try {
    lock = await lockOutput(out);
    await makeFolder(partial);
    const description = await writeModel(plan, source, partial, options);
    await tryGraphs(partial, description, options);
    throwIfCancelled(options.signal);
    await rename(partial, out);
    await syncFolder(dirname(out));
    return { folder: out, description, remarks: plan.remarks };
  } catch (error) {
    if (lock !== undefined) await rm(partial, { recursive: true, force: true });
    throw asTrawlError(error);
  } finally {
    if (lock !== undefined) {
      await rm(lockFileOf(out), { force: true });
      lock.release();
    }
    await plan.close();
  }
}

const lockFileOf = (out: string): string => `${out}.lock`;

/** Two imports to the same folder would delete each other's files. */
async function lockOutput(out: string): Promise<FileLock> {
  try {
    await mkdir(dirname(out), { recursive: true });
  } catch (error) {
    throw cannotCreate(dirname(out), error);
  }
  const lock = FileLock.acquire(lockFileOf(out), 'exclusive');
  if (lock !== undefined) return lock;
  throw new TrawlError(
    'MODEL_LOCKED',
    `Another process is writing ${out}. Wait for it, stop it, or choose another name.`,
  );
}

async function makePlan(
  source: string,
  { source: origin, precisions, int8, pooling }: ImportOptions,
): Promise<ModelPlan> {
  await refuseAdapter(source);
  const { model_type: modelType } = await readJsonFile(join(source, 'config.json'));
  const names = origin === undefined ? [] : [origin.id];
  const graph = findOnnx(source);
  const hasWeights = ['model.safetensors', 'model.safetensors.index.json'].some((name) =>
    existsSync(join(source, name)),
  );
  const canUseWeights = hasWeights && isSupportedArchitecture(modelType);
  if (graph !== null && !canUseWeights) return planOnnx(source, graph, names, { precisions, pooling });
  return planCheckpoint(source, names, precisions ?? DEFAULT_PRECISIONS, { int8, pooling });
}

/**
 * Checks the config files of a checkpoint before its weights are downloaded. Returns whether an ONNX graph would be used in place of
 * the safetensors files, because the import makes no graph of this architecture.
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
  const raw = await readJsonFile(join(folder, 'config.json'));
  if (formats.graph && !(formats.safetensors && isSupportedArchitecture(raw.model_type))) {
    await checkGraphConfigs(folder, names, raw, pooling);
    return true;
  }
  await checkConfigs(folder, names, precisions ?? DEFAULT_PRECISIONS, pooling);
  return false;
}

/** Throws MODEL_INVALID for the folder of an adapter (LoRA), which has only the changes of another model's weights. */
async function refuseAdapter(source: string): Promise<void> {
  const path = join(source, 'adapter_config.json');
  if (existsSync(join(source, 'config.json')) || !existsSync(path)) return;
  const { base_model_name_or_path: base } = await readJsonFile(path);
  throw new TrawlError(
    'MODEL_INVALID',
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
    graphs.push({
      path: written.path,
      precision,
      ...(output === null ? {} : { output }),
      ...(written.externalData.length === 0 ? {} : { externalData: [...written.externalData] }),
    });
  }
  await plan.writeTokenizer(join(folder, 'tokenizer.json'));
  const paths = [...graphs.flatMap((graph) => [graph.path, ...(graph.externalData ?? [])]), 'tokenizer.json'];
  const files: TrawlModelFile['files'] = [];
  for (const path of paths) {
    const whole = join(folder, path);
    files.push({ path, bytes: (await stat(whole)).size, sha256: await sha256OfFile(whole, signal) });
  }
  const { facts, maxPositions, poolingFrom, labels, activation, pairTemplate } = plan;
  const description: TrawlModelFile = {
    format: 'trawl-model',
    version: TRAWL_MODEL_VERSION,
    name: name ?? origin?.id ?? basename(source),
    kind: plan.kind,
    architecture: facts.architecture,
    dimension: facts.dimension,
    pooling: facts.pooling,
    ...(poolingFrom === null ? {} : { poolingFrom }),
    normalize: facts.normalize,
    similarity: facts.similarity,
    prefixes: { ...facts.prefixes },
    maxTokens: { ...facts.maxTokens },
    ...(maxPositions === null ? {} : { maxPositions }),
    ...(labels === null ? {} : { labels }),
    ...(activation === null ? {} : { activation }),
    ...(pairTemplate === null ? {} : { pairTemplate }),
    beforeTruncation: facts.beforeTruncation,
    graph: graphs[0]!,
    graphs,
    tokenizer: { path: 'tokenizer.json' },
    batchInvariant: facts.batchInvariant,
    weightsSha256: await weightsSha256(plan.weightFiles, signal, onProgress),
    source: { ...(origin ?? { kind: 'folder', id: basename(source) }) },
    files,
  };
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
  return sha256OfText(sums.join(''));
}

/** Loads every graph as the server does and embeds a text. The encoder checks that shapes fit and values are finite. */
async function tryGraphs(folder: string, description: TrawlModelFile, options: ImportOptions): Promise<void> {
  for (const { precision } of graphsOf(description)) {
    throwIfCancelled(options.signal);
    const model = await readModelFolder(folder, {}, { precision, kind: description.kind });
    const encoder = await ModelEncoder.open({ model, workers: 1 });
    try {
      const { outcomes } = await encoder.encode(['a short text'], { inputType: 'passage' });
      const [outcome] = outcomes;
      if (outcome?.ok === false) {
        throw new TrawlError(
          'MODEL_INVALID',
          `The imported ${precision} graph fails on a test text: ${outcome.error.message}`,
          { cause: outcome.error },
        );
      }
    } finally {
      await encoder.close();
    }
    options.onProgress?.({ stage: `check ${precision}`, done: 1, total: 1 });
  }
}

function checkPrecisions(precisions: readonly Precision[] | undefined): void {
  if (precisions === undefined) return;
  const wrong = precisions.find(
    (precision, i) => !PRECISIONS.includes(precision) || precisions.indexOf(precision) !== i,
  );
  if (wrong === undefined && precisions.length > 0) return;
  throw new TrawlError(
    'CONFIG_INVALID',
    `precisions is ${precisions.join(', ') || 'empty'}; it must be one or more of ${PRECISIONS.join(', ')}, each at most once.`,
  );
}

function checkPooling(pooling: StatedPooling | undefined): void {
  if (pooling === undefined || STATED_POOLINGS.includes(pooling)) return;
  throw new TrawlError(
    'CONFIG_INVALID',
    `pooling is ${JSON.stringify(pooling)}; it must be one of ${STATED_POOLINGS.join(', ')}.`,
  );
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
    throw cannotCreate(path, error);
  }
}

function cannotCreate(path: string, cause: unknown): TrawlError {
  return new TrawlError('OUTPUT_NOT_WRITABLE', `Cannot create ${path}: ${(cause as Error).message}.`, { cause });
}

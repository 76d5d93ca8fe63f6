import { existsSync } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { throwIfCancelled } from '../src/abort.ts';
import { EncoderPool } from '../src/embedding/encoder-pool.ts';
import { readJsonFile } from '../src/embedding/json-file.ts';
import { sha256OfText } from '../src/embedding/model-checksum.ts';
import { readModelFolder } from '../src/embedding/model-folder.ts';
import {
  graphsOf,
  TRAWL_MODEL_FILE,
  TRAWL_MODEL_VERSION,
  type TrawlModelFile,
  type TrawlModelGraph,
} from '../src/embedding/trawl-model-file.ts';
import { asTrawlError, isNodeError, TrawlError } from '../src/errors.ts';
import { sha256OfFile } from '../src/file-checksum.ts';
import { FileLock } from '../src/file-lock.ts';
import { PRECISIONS, type Precision } from '../src/manifest/model-identity.ts';
import { syncFolder, writeJsonDurably } from '../src/manifest/write-json.ts';
import { SUPPORTED_ARCHITECTURES } from './encoder-config.ts';
import type { ModelPlan } from './model-plan.ts';
import { planCheckpoint } from './plan-checkpoint.ts';
import { findOnnx, planOnnx } from './plan-onnx.ts';

/** Where a model came from, for people and for a later check. */
export interface ModelSource {
  readonly kind: 'folder' | 'hub';
  /** The hub's id, or the folder's name. */
  readonly id: string;
  readonly revision?: string;
  readonly files?: { path: string; bytes: number; sha256: string }[];
}

export interface ImportProgress {
  /** `read` (checksums of the source), `write <precision>`, `check <precision>`. */
  readonly stage: string;
  /** In bytes for `write`, in files or graphs otherwise. */
  readonly done: number;
  readonly total: number;
}

export interface ImportOptions {
  /** The folder to make. It must not exist. */
  readonly out: string;
  /** Default: the source's id, else the folder's name. */
  readonly name?: string | undefined;
  /** Graphs to make, the first one the default; default float32 and int8, and of ONNX graphs what there is. */
  readonly precisions?: readonly Precision[] | undefined;
  /** Recorded; default the folder's name. An id also tells the family where the files say nothing. */
  readonly source?: ModelSource | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
}

export interface ImportedModel {
  /** Absolute. */
  readonly folder: string;
  readonly description: TrawlModelFile;
}

const DEFAULT_PRECISIONS: readonly Precision[] = ['float32', 'int8'];

/**
 * Makes a model folder of a checkpoint folder: safetensors of the BERT family, or an ONNX graph as others export it.
 * Everything that configs, headers and tokenizer tell is checked before anything is written. The folder is put together
 * as `<out>.partial`, every graph of it is tried on a text, then it is renamed: it is there whole or not at all.
 *
 * Errors: MODEL_NOT_FOUND, MODEL_INVALID, CONFIG_INVALID for precisions, OUTPUT_NOT_WRITABLE, DISK_FULL, CANCELLED.
 */
export async function importModel(sourceFolder: string, options: ImportOptions): Promise<ImportedModel> {
  const source = resolve(sourceFolder);
  const out = resolve(options.out);
  checkPrecisions(options.precisions);
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
    return { folder: out, description };
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

/** Two imports at once would empty each other's folder. */
async function lockOutput(out: string): Promise<FileLock> {
  try {
    await mkdir(dirname(out), { recursive: true });
  } catch (error) {
    throw cannotBeMade(dirname(out), error);
  }
  const lock = FileLock.acquire(lockFileOf(out), 'exclusive');
  if (lock !== undefined) return lock;
  throw new TrawlError(
    'OUTPUT_NOT_WRITABLE',
    `${out} is being made by another process at this moment. Wait for it, stop it, or choose another name.`,
  );
}

async function makePlan(source: string, { source: origin, precisions }: ImportOptions): Promise<ModelPlan> {
  const { model_type: modelType } = await readJsonFile(join(source, 'config.json'));
  const names = origin === undefined ? [] : [origin.id];
  const graph = findOnnx(source);
  const hasWeights = ['model.safetensors', 'model.safetensors.index.json'].some((name) =>
    existsSync(join(source, name)),
  );
  const takesWeights = hasWeights && SUPPORTED_ARCHITECTURES.includes(String(modelType));
  if (graph !== null && !takesWeights) return planOnnx(source, graph, names, precisions);
  return planCheckpoint(source, names, precisions ?? DEFAULT_PRECISIONS);
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
  const { facts, maxPositions, labels, activation } = plan;
  const description: TrawlModelFile = {
    format: 'trawl-model',
    version: TRAWL_MODEL_VERSION,
    name: name ?? origin?.id ?? basename(source),
    kind: plan.kind,
    architecture: facts.architecture,
    dimension: facts.dimension,
    pooling: facts.pooling,
    normalize: facts.normalize,
    similarity: facts.similarity,
    prefixes: { ...facts.prefixes },
    maxTokens: { ...facts.maxTokens },
    ...(maxPositions === null ? {} : { maxPositions }),
    ...(labels === null ? {} : { labels }),
    ...(activation === null ? {} : { activation }),
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

/** SHA-256 of the weight files' checksums, in the order of their names, one after the other in hexadecimal. */
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

/** Loads every graph as a server would and runs it on a text: the shapes fit and the values are finite. */
async function tryGraphs(folder: string, description: TrawlModelFile, options: ImportOptions): Promise<void> {
  for (const { precision } of graphsOf(description)) {
    throwIfCancelled(options.signal);
    const model = await readModelFolder(folder, {}, { precision, kind: description.kind });
    const pool = await EncoderPool.open({ model, workers: 1 });
    try {
      const { outcomes } = await pool.encode(['a short text'], { kind: 'passage' });
      const [outcome] = outcomes;
      if (outcome?.ok === false) {
        throw new TrawlError(
          'MODEL_INVALID',
          `The ${precision} graph made of the checkpoint does not work: ${outcome.error.message}`,
          { cause: outcome.error },
        );
      }
    } finally {
      await pool.close();
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
    `precisions is ${precisions.join(', ') || 'empty'}; it must be one or more of ${PRECISIONS.join(', ')}, each once.`,
  );
}

async function checkFolders(source: string, out: string): Promise<void> {
  try {
    if (!(await stat(source)).isDirectory()) throw new TrawlError('MODEL_NOT_FOUND', `${source} is not a folder.`);
  } catch (error) {
    if (!isNodeError(error)) throw error;
    throw new TrawlError('MODEL_NOT_FOUND', `There is no folder ${source}: ${error.message}.`, { cause: error });
  }
  if (existsSync(out)) {
    throw new TrawlError('OUTPUT_NOT_WRITABLE', `${out} exists already. Remove it or choose another name.`);
  }
}

/** Anew: what an import that was killed left behind goes. */
async function makeFolder(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
    await mkdir(path, { recursive: true });
  } catch (error) {
    throw cannotBeMade(path, error);
  }
}

function cannotBeMade(path: string, cause: unknown): TrawlError {
  return new TrawlError('OUTPUT_NOT_WRITABLE', `${path} cannot be made: ${(cause as Error).message}.`, { cause });
}

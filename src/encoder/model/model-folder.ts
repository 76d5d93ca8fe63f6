import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join, normalize, resolve } from 'node:path';
import { isNodeError, type TrawlError } from '../../base/errors.ts';
import { fileState, sha256OfFile } from '../../base/system/file-checksum.ts';
import type { EnginePrecision } from '../../engine/native/encoder-functions.ts';
import type { FolderModelIdentity, Precision } from '../identity/model-identity.ts';
import { invalidConfig, invalidModel } from './json-file.ts';
import { locateModelFolder } from './model-location.ts';
import { applyOverrides, type ModelOverrides } from './model-overrides.ts';
import { readTransformersFolder } from './transformers-folder.ts';
import {
  graphsOf,
  type ModelKind,
  type PairTemplate,
  parsePairTemplate,
  readTrawlModelFile,
  type ScoreActivation,
  TRAWL_MODEL_FILE,
  type TrawlModelGraph,
} from './trawl-model-file.ts';

interface ModelFile {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** A model, ready to be loaded. Plain data, because it is sent to worker threads. */
export interface ModelFolder {
  /** Absolute path. */
  readonly folder: string;
  readonly identity: FolderModelIdentity;
  /** Absolute path. */
  readonly graphPath: string;
  /** Set if the engine runs the graph, whose file then holds only weights; absent for an ONNX graph. */
  readonly enginePrecision?: EnginePrecision;
  /** Name of the graph's output; absent if the pooling decides. */
  readonly graphOutput?: string;
  /** Absolute path. */
  readonly tokenizerPath: string;
  /** Absolute paths of the files with the graph's weights; empty if the graph's file contains them. */
  readonly externalData: readonly string[];
  /** Precisions of the folder's graphs, the default one first. */
  readonly precisions: readonly Precision[];
  readonly enginePrecisions: readonly EnginePrecision[];
  readonly kind: ModelKind;
  /** Cross-encoders only: values per pair, and the activation that turns them into scores. */
  readonly labels?: number;
  readonly activation?: ScoreActivation;
  /** Rerankers that read a chat: the text of a pair; absent for the tokenizer's template of pairs. */
  readonly pairTemplate?: PairTemplate;
  /** Recorded files with absolute paths; empty for a folder without trawl-model.json. */
  readonly files: readonly ModelFile[];
}

interface ModelChoice {
  /** Precision of the graph. Default: the precision of the description's default graph. */
  readonly precision?: Precision;
  /** The expected model kind, or `any`. Default: `encoder`. */
  readonly kind?: ModelKind | 'any';
  /** Whether to compare small files with their checksums. Default: true. */
  readonly checksums?: boolean;
}

/** Files up to this size are compared with their checksums at opening (up to 30 ms each), larger ones only by `verifyModelFolder`. */
const MAX_CHECKED_BYTES = 32 * 1024 * 1024;

/** The first bytes of a file of weights in int8 (native/src/encoder/bert_file.hpp). */
const INT8_MAGIC = 'TRAWLBI8';

const FETCH_AGAIN = 'Download or import the model again (trawl model add SOURCE --force).';

/**
 * Reads a model's description: `trawl-model.json`, or the config files of a sentence-transformers or Transformers folder with an
 * ONNX graph. Checks that all recorded files exist and have the recorded size, and compares the checksums of the small files that
 * it uses (`MAX_CHECKED_BYTES`). Errors: MODEL_NOT_FOUND; MODEL_INVALID, also for an unexpected model kind; CONFIG_INVALID for
 * invalid overrides and for a precision that the folder does not have.
 */
export async function readModelFolder(
  nameOrPath: string,
  overrides: ModelOverrides = {},
  choice: ModelChoice = {},
): Promise<ModelFolder> {
  const folder = locateModelFolder(nameOrPath);
  const hasDescription = existsSync(join(folder, TRAWL_MODEL_FILE));
  if (!hasDescription && !existsSync(join(folder, 'config.json'))) {
    throw invalidModel(`${folder} is not a model folder: it has neither ${TRAWL_MODEL_FILE} nor config.json.`);
  }
  const { model, maxPositions } = hasDescription
    ? await readDescribed(folder, choice)
    : await readUndescribed(folder, choice.precision);
  checkKind(model, choice.kind ?? 'encoder');
  return Object.freeze({ ...model, identity: applyOverrides(model.identity, overrides, maxPositions) });
}

/** Compares all recorded files with their checksums and returns their number. Throws MODEL_INVALID with the files that differ. */
export async function verifyModelFolder({ folder, files }: ModelFolder): Promise<number> {
  await checkChecksums(folder, files, sha256OfFile);
  return files.length;
}

async function checkChecksums(
  folder: string,
  files: readonly ModelFile[],
  sha256Of: (path: string) => Promise<string>,
): Promise<void> {
  const changed: string[] = [];
  for (const { path, sha256 } of files) if ((await sha256Of(path)) !== sha256) changed.push(path);
  if (changed.length === 0) return;
  throw invalidModel(
    `The content of ${changed.join(', ')} differs from the checksum in ${join(folder, TRAWL_MODEL_FILE)}: it was damaged or ` +
      `changed. ${FETCH_AGAIN}`,
    { details: { changed } },
  );
}

interface Read {
  readonly model: ModelFolder;
  readonly maxPositions?: number;
}

async function readDescribed(folder: string, { precision, checksums = true }: ModelChoice): Promise<Read> {
  const description = await readTrawlModelFile(folder);
  const { name, architecture, dimension, pooling, similarity, prefixes, maxTokens, maxPositions } = description;
  const { pairTemplate, weightsSha256 } = description;
  const graphs = graphsOf(description);
  const graph = chooseGraph(folder, graphs, precision ?? description.graph.precision);
  const files = description.files.map((file) => ({ ...file, path: resolve(folder, normalize(file.path)) }));
  for (const file of files) await checkSize(file);
  const graphPath = resolve(folder, graph.path);
  const enginePrecisions = await findEnginePrecisions(folder, graphs);
  const externalData = (graph.externalData ?? []).map((path) => resolve(folder, path));
  const tokenizerPath = resolve(folder, description.tokenizer.path);
  const used = [graphPath, ...externalData, tokenizerPath];
  if (checksums) {
    const small = files.filter(({ path, bytes }) => used.includes(path) && bytes <= MAX_CHECKED_BYTES);
    await checkChecksums(folder, small, checksumOf);
  }
  const filesSha256 = await identitySha256(used, files);
  const tokenizerSha256 = files.find((file) => file.path === tokenizerPath)?.sha256;
  const model: ModelFolder = {
    folder,
    identity: {
      name,
      // Scores depend on the text around a pair as on the weights.
      sha256: pairTemplate === undefined ? filesSha256 : hash('sha256', `${filesSha256}\n${pairTemplate}`),
      architecture,
      dimension,
      pooling,
      normalize: description.normalize,
      similarity,
      prefixes: { query: prefixes.query, passage: prefixes.passage },
      maxTokens: { query: maxTokens.query, passage: maxTokens.passage },
      precision: graph.precision,
      batchInvariant: description.batchInvariant,
      beforeTruncation: description.beforeTruncation,
      queryTemplate: description.queryTemplate,
      ...(weightsSha256 === undefined || tokenizerSha256 === undefined
        ? {}
        : { sourceSha256: hash('sha256', weightsSha256 + tokenizerSha256) }),
    },
    graphPath,
    enginePrecision: enginePrecisions.find((one) => one === graph.precision),
    graphOutput: graph.output,
    tokenizerPath,
    externalData,
    precisions: [...new Set([description.graph.precision, ...graphs.map((one) => one.precision)])],
    enginePrecisions,
    kind: description.kind ?? 'encoder',
    labels: description.labels,
    activation: description.activation,
    pairTemplate: pairTemplate === undefined ? undefined : parsePairTemplate(pairTemplate),
    files,
  };
  return { model, maxPositions };
}

async function readUndescribed(folder: string, precision: Precision | undefined): Promise<Read> {
  const { identity, graphPath, tokenizerPath, maxPositions } = await readTransformersFolder(folder);
  chooseGraph(folder, [{ precision: identity.precision }], precision ?? identity.precision);
  // Names that exporters use for the weights of graphs larger than 2 GiB.
  const externalData = [`${graphPath}_data`, `${graphPath}.data`].filter((path) => existsSync(path));
  const model: ModelFolder = {
    folder,
    identity: { ...identity, sha256: await identitySha256([graphPath, ...externalData, tokenizerPath], []) },
    graphPath,
    tokenizerPath,
    externalData,
    precisions: [identity.precision],
    enginePrecisions: [],
    kind: 'encoder',
    files: [],
  };
  return { model, maxPositions };
}

function chooseGraph<G extends { readonly precision: Precision }>(
  folder: string,
  graphs: readonly G[],
  precision: Precision,
): G {
  const graph = graphs.find((candidate) => candidate.precision === precision);
  if (graph !== undefined) return graph;
  const precisions = graphs.map((candidate) => candidate.precision);
  throw invalidConfig(
    `${folder} has no graph of precision ${precision}; it has ${precisions.join(', ')}. Choose one of these, or add the model again ` +
      `with it: trawl model add SOURCE --force --precision ${[...precisions, precision].join(',')}` +
      `${precision === 'bfloat16' ? " (bfloat16 is for BERT's architectures only)" : ''}.`,
    { details: { precision, precisions } },
  );
}

/** Precisions in which the engine runs graphs of a model: bfloat16, and int8 if its file begins like weights and not like a graph. */
async function findEnginePrecisions(folder: string, graphs: readonly TrawlModelGraph[]): Promise<EnginePrecision[]> {
  const found: EnginePrecision[] = [];
  for (const { path, precision } of graphs) {
    if (precision === 'bfloat16') found.push(precision);
    if (precision === 'int8' && (await beginsWith(resolve(folder, path), INT8_MAGIC))) found.push(precision);
  }
  return found;
}

/** False for a file that cannot be read; opening it reports that. */
async function beginsWith(path: string, magic: string): Promise<boolean> {
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return false;
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(magic.length), 0, magic.length, 0);
    return buffer.toString('latin1', 0, bytesRead) === magic;
  } finally {
    await file.close();
  }
}

function checkKind({ folder, kind }: ModelFolder, wanted: ModelKind | 'any'): void {
  if (wanted === 'any' || kind === wanted) return;
  throw invalidModel(
    wanted === 'encoder'
      ? `${folder} is a cross-encoder: it scores pairs of query and passage and returns no vectors. An encoder would fit, ` +
          'for example intfloat/e5-base-v2. This one reranks the hits of an index: trawl serve INDEX --rerank MODEL (also search and eval).'
      : `${folder} is an encoder: it returns vectors and does not score pairs. A cross-encoder would fit, ` +
          'for example BAAI/bge-reranker-base. This one embeds a corpus and its queries: trawl index CORPUS --model MODEL.',
    { details: { kind, wanted } },
  );
}

async function identitySha256(paths: readonly string[], files: readonly ModelFile[]): Promise<string> {
  let sums = '';
  for (const path of paths) sums += files.find((file) => file.path === path)?.sha256 ?? (await checksumOf(path));
  return hash('sha256', sums);
}

/** Finished and running computations by path and state. Never evicted: a process opens few models. */
const knownChecksums = new Map<string, Promise<string>>();

/** The SHA-256 of a file, which is read only once per process while it does not change. Throws MODEL_INVALID if it cannot be read. */
async function checksumOf(path: string): Promise<string> {
  try {
    const key = `${path}\0${fileState(path)}`;
    const known = knownChecksums.get(key) ?? sha256OfFile(path);
    knownChecksums.set(key, known);
    // The next call tries again after a failure.
    known.catch(() => knownChecksums.delete(key));
    return await known;
  } catch (error) {
    throw missingFile(path, error);
  }
}

async function checkSize({ path, bytes: expectedBytes }: ModelFile): Promise<void> {
  const { size: bytes } = await stat(path).catch((error: unknown) => {
    throw missingFile(path, error);
  });
  if (bytes === expectedBytes) return;
  throw invalidModel(`${path} has ${bytes} bytes, but the model's description says ${expectedBytes}. ${FETCH_AGAIN}`, {
    details: { bytes, expectedBytes },
  });
}

function missingFile(path: string, cause: unknown): TrawlError {
  const reason = isNodeError(cause) && cause.code === 'ENOENT' ? 'is missing' : 'cannot be read';
  return invalidModel(`${path} ${reason}. ${FETCH_AGAIN}`, { cause });
}

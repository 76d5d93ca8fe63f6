import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join, normalize, resolve } from 'node:path';
import { isNodeError, TrawlError } from '../../base/errors.ts';
import { sha256OfFile } from '../../base/system/file-checksum.ts';
import type { FolderModelIdentity, Precision } from '../identity/model-identity.ts';
import { type EnginePrecision, enginePrecisionsOf } from './engine-weights.ts';
import { cachedSha256OfFile, sha256OfText } from './model-checksum.ts';
import { locateModelFolder } from './model-location.ts';
import { applyOverrides, type ModelOverrides } from './model-overrides.ts';
import { type PairTemplate, parsePairTemplate } from './pair-template.ts';
import { readTransformersFolder } from './transformers-folder.ts';
import {
  graphsOf,
  type ModelKind,
  readTrawlModelFile,
  type ScoreActivation,
  TRAWL_MODEL_FILE,
} from './trawl-model-file.ts';

/** A file that the model's description records. */
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
  /** Set if the engine runs the graph, whose file then holds only weights; null for an ONNX graph. */
  readonly enginePrecision: EnginePrecision | null;
  /** Name of the graph's output; null if the pooling decides. */
  readonly graphOutput: string | null;
  /** Absolute path. */
  readonly tokenizerPath: string;
  /** Absolute paths of the files with the graph's weights; empty if the graph's file contains them. */
  readonly externalData: readonly string[];
  /** Precisions of the folder's graphs, the default one first. */
  readonly precisions: readonly Precision[];
  /** The precisions that the engine runs. */
  readonly enginePrecisions: readonly EnginePrecision[];
  readonly kind: ModelKind;
  /** Cross-encoders only: values per pair, and the activation that turns them into scores. */
  readonly labels: number | null;
  readonly activation: ScoreActivation | null;
  /** Rerankers that read a chat: the text of a pair; null for the tokenizer's template of pairs. */
  readonly pairTemplate: PairTemplate | null;
  /** Checksum of the checkpoint's weights, equal for all precisions made from it; null if not recorded. */
  readonly weightsSha256: string | null;
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

/**
 * Files up to this size are compared with their checksums when the model opens, which takes up to about 30 ms per file. Larger
 * files are compared only by `verifyModelFolder`.
 */
const MAX_CHECKED_BYTES = 32 * 1024 * 1024;

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
    throw new TrawlError(
      'MODEL_INVALID',
      `${folder} is not a model folder: it has neither ${TRAWL_MODEL_FILE} nor config.json.`,
    );
  }
  const { model, maxPositions } = hasDescription
    ? await readDescribed(folder, choice)
    : await readUndescribed(folder, choice.precision);
  checkKind(model, choice.kind ?? 'encoder');
  const identity = { ...model.identity, ...sourceSha256(model) };
  return Object.freeze({ ...model, identity: applyOverrides(identity, overrides, maxPositions) });
}

/** A checksum that is equal for all precisions of one model. */
function sourceSha256({ weightsSha256, tokenizerPath, files }: ModelFolder): { sourceSha256?: string } {
  const tokenizer = files.find((file) => file.path === tokenizerPath)?.sha256;
  if (weightsSha256 === null || tokenizer === undefined) return {};
  return { sourceSha256: sha256OfText(weightsSha256 + tokenizer) };
}

/** Compares all recorded files with their checksums and returns their number. Throws MODEL_INVALID with the files that differ. */
export async function verifyModelFolder(model: ModelFolder): Promise<number> {
  await checkChecksums(model.folder, model.files, sha256OfFile);
  return model.files.length;
}

async function checkChecksums(
  folder: string,
  files: readonly ModelFile[],
  sha256Of: (path: string) => Promise<string>,
): Promise<void> {
  const changed: string[] = [];
  for (const { path, sha256 } of files) if ((await sha256Of(path)) !== sha256) changed.push(path);
  if (changed.length === 0) return;
  throw new TrawlError(
    'MODEL_INVALID',
    `The content of ${changed.join(', ')} differs from the checksum in ${join(folder, TRAWL_MODEL_FILE)}: it was damaged or ` +
      'changed. Download or import the model again (trawl model add SOURCE --force).',
    { details: { changed } },
  );
}

interface Read {
  readonly model: ModelFolder;
  readonly maxPositions: number | null;
}

async function readDescribed(folder: string, { precision, checksums = true }: ModelChoice): Promise<Read> {
  const description = await readTrawlModelFile(folder);
  const { name, architecture, dimension, pooling, similarity, prefixes, maxTokens, batchInvariant } = description;
  const graphs = graphsOf(description);
  const precisions = [description.graph.precision, ...graphs.map((graph) => graph.precision)];
  const graph = chooseGraph(folder, graphs, precision ?? description.graph.precision);
  const files = description.files.map((file) => ({ ...file, path: resolve(folder, normalize(file.path)) }));
  for (const file of files) await checkSize(file);
  const graphPath = resolve(folder, graph.path);
  const enginePrecisions = await enginePrecisionsOf(folder, graphs);
  const externalData = (graph.externalData ?? []).map((path) => resolve(folder, path));
  const tokenizerPath = resolve(folder, description.tokenizer.path);
  const used = [graphPath, ...externalData, tokenizerPath];
  if (checksums) {
    const small = files.filter(({ path, bytes }) => used.includes(path) && bytes <= MAX_CHECKED_BYTES);
    await checkChecksums(folder, small, checksumOf);
  }
  const filesSha256 = await identitySha256(used, files);
  const { pairTemplate } = description;
  const model: ModelFolder = {
    folder,
    identity: {
      name,
      // Scores depend on the text around a pair as on the weights.
      sha256: pairTemplate === undefined ? filesSha256 : sha256OfText(`${filesSha256}\n${pairTemplate}`),
      architecture,
      dimension,
      pooling,
      normalize: description.normalize,
      similarity,
      prefixes: { query: prefixes.query, passage: prefixes.passage },
      maxTokens: { query: maxTokens.query, passage: maxTokens.passage },
      precision: graph.precision,
      batchInvariant,
      beforeTruncation: description.beforeTruncation,
      queryTemplate: description.queryTemplate,
    },
    graphPath,
    enginePrecision: enginePrecisions.find((one) => one === graph.precision) ?? null,
    graphOutput: graph.output ?? null,
    tokenizerPath,
    externalData,
    precisions: [...new Set(precisions)],
    enginePrecisions,
    kind: description.kind ?? 'encoder',
    labels: description.labels ?? null,
    activation: description.activation ?? null,
    pairTemplate: pairTemplate === undefined ? null : parsePairTemplate(pairTemplate),
    weightsSha256: description.weightsSha256 ?? null,
    files,
  };
  return { model, maxPositions: description.maxPositions ?? null };
}

async function readUndescribed(folder: string, precision: Precision | undefined): Promise<Read> {
  const { identity, graphPath, tokenizerPath, maxPositions } = await readTransformersFolder(folder);
  chooseGraph(folder, [{ precision: identity.precision }], precision ?? identity.precision);
  // Names that exporters use for the weights of graphs larger than 2 GiB.
  const externalData = [`${graphPath}_data`, `${graphPath}.data`].filter((path) => existsSync(path));
  const sha256 = await identitySha256([graphPath, ...externalData, tokenizerPath], []);
  const model: ModelFolder = {
    folder,
    identity: { ...identity, sha256 },
    graphPath,
    enginePrecision: null,
    graphOutput: null,
    tokenizerPath,
    externalData,
    precisions: [identity.precision],
    enginePrecisions: [],
    kind: 'encoder',
    labels: null,
    activation: null,
    pairTemplate: null,
    weightsSha256: null,
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
  const present = graphs.map((candidate) => candidate.precision).join(', ');
  throw new TrawlError(
    'CONFIG_INVALID',
    `${folder} has no graph of precision ${precision}; it has ${present}. Choose one of these, or add the model again ` +
      `with it: trawl model add SOURCE --force --precision ${[...graphs.map((candidate) => candidate.precision), precision].join(',')}` +
      `${precision === 'bfloat16' ? " (bfloat16 is for BERT's architectures only)" : ''}.`,
    { details: { precision, precisions: graphs.map((candidate) => candidate.precision) } },
  );
}

function checkKind(model: ModelFolder, wanted: ModelKind | 'any'): void {
  if (wanted === 'any' || model.kind === wanted) return;
  throw new TrawlError(
    'MODEL_INVALID',
    wanted === 'encoder'
      ? `${model.folder} is a cross-encoder: it scores pairs of query and passage and returns no vectors. An encoder would fit, ` +
          'for example intfloat/e5-base-v2. This one reranks the hits of an index: trawl serve INDEX --rerank MODEL (also search and eval).'
      : `${model.folder} is an encoder: it returns vectors and does not score pairs. A cross-encoder would fit, ` +
          'for example BAAI/bge-reranker-base. This one embeds a corpus and its queries: trawl index CORPUS --model MODEL.',
    { details: { kind: model.kind, wanted } },
  );
}

/** SHA-256 of the files' concatenated hexadecimal checksums. */
async function identitySha256(paths: readonly string[], files: readonly ModelFile[]): Promise<string> {
  const parts: string[] = [];
  for (const path of paths) {
    const recorded = files.find((file) => file.path === path)?.sha256;
    parts.push(recorded ?? (await checksumOf(path)));
  }
  return sha256OfText(parts.join(''));
}

async function checksumOf(path: string): Promise<string> {
  try {
    return await cachedSha256OfFile(path);
  } catch (error) {
    throw missingFile(path, error);
  }
}

async function checkSize(file: ModelFile): Promise<void> {
  let bytes: number;
  try {
    bytes = (await stat(file.path)).size;
  } catch (error) {
    throw missingFile(file.path, error);
  }
  if (bytes !== file.bytes) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${file.path} has ${bytes} bytes, but the model's description says ${file.bytes}. Download or import the model again (trawl model add SOURCE --force).`,
      { details: { bytes, expectedBytes: file.bytes } },
    );
  }
}

function missingFile(path: string, cause: unknown): TrawlError {
  const reason = isNodeError(cause) && cause.code === 'ENOENT' ? 'is missing' : 'cannot be read';
  return new TrawlError(
    'MODEL_INVALID',
    `${path} ${reason}. Download or import the model again (trawl model add SOURCE --force).`,
    { cause },
  );
}

import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join, normalize, resolve } from 'node:path';
import { isNodeError, TrawlError } from '../errors.ts';
import { sha256OfFile } from '../file-checksum.ts';
import type { ModelIdentity, Precision } from '../manifest/model-identity.ts';
import { cachedSha256OfFile, sha256OfText } from './model-checksum.ts';
import { locateModelFolder } from './model-location.ts';
import { applyOverrides, type ModelOverrides } from './model-overrides.ts';
import { readTransformersFolder } from './transformers-folder.ts';
import {
  graphsOf,
  type ModelKind,
  readTrawlModelFile,
  type ScoreActivation,
  TRAWL_MODEL_FILE,
} from './trawl-model-file.ts';

/** A file as the model's description records it. */
export interface ModelFile {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** Everything an encoder needs to know of a model. Plain data: it is sent to worker threads as it is. */
export interface ModelFolder {
  /** Absolute. */
  readonly folder: string;
  readonly identity: ModelIdentity;
  /** Absolute, as is `tokenizerPath`. */
  readonly graphPath: string;
  /** Name of the graph's output; null: chosen by the pooling. */
  readonly graphOutput: string | null;
  readonly tokenizerPath: string;
  /** Absolute paths of the files that hold the graph's weights, where they are not in the graph's file. */
  readonly externalData: readonly string[];
  /** Precisions that the folder has a graph of, the default one first. */
  readonly precisions: readonly Precision[];
  readonly kind: ModelKind;
  /** Of a cross-encoder: values per pair, and what makes scores of them. */
  readonly labels: number | null;
  readonly activation: ScoreActivation | null;
  /** Checksum over the source's weights, equal for all precisions of one checkpoint; null where not recorded. */
  readonly weightsSha256: string | null;
  /** Recorded files, absolute; empty where the folder has no trawl-model.json. */
  readonly files: readonly ModelFile[];
}

export interface ModelChoice {
  /** Which graph; default: the description's own. */
  readonly precision?: Precision | undefined;
  /** What is wanted; default `encoder`. */
  readonly kind?: ModelKind | undefined;
}

/**
 * Reads a model's description: `trawl-model.json`, or the config files of a sentence-transformers or Transformers
 * folder that holds an ONNX graph. The presence and size of recorded files are checked, their content is not
 * (`verifyModelFolder`). Errors: MODEL_NOT_FOUND, MODEL_INVALID also for the other kind of model, CONFIG_INVALID for
 * overrides and for a precision that the folder does not have.
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
    ? await readDescribed(folder, choice.precision)
    : await readUndescribed(folder, choice.precision);
  checkKind(model, choice.kind ?? 'encoder');
  const identity = { ...model.identity, ...sourceSha256(model) };
  return Object.freeze({ ...model, identity: applyOverrides(identity, overrides, maxPositions) });
}

/** What all precisions of one model have in common. */
function sourceSha256({ weightsSha256, tokenizerPath, files }: ModelFolder): { sourceSha256?: string } {
  const tokenizer = files.find((file) => file.path === tokenizerPath)?.sha256;
  if (weightsSha256 === null || tokenizer === undefined) return {};
  return { sourceSha256: sha256OfText(weightsSha256 + tokenizer) };
}

/** Compares every recorded file with its checksum: MODEL_INVALID names those that differ. Returns how many there are. */
export async function verifyModelFolder(model: ModelFolder): Promise<number> {
  const changed: string[] = [];
  for (const file of model.files) {
    if ((await sha256OfFile(file.path)) !== file.sha256) changed.push(file.path);
  }
  if (changed.length > 0) {
    throw new TrawlError(
      'MODEL_INVALID',
      `The content of ${changed.join(', ')} differs from the checksum in ${join(model.folder, TRAWL_MODEL_FILE)}. ` +
        'Fetch or make the model again.',
      { details: { changed } },
    );
  }
  return model.files.length;
}

interface Read {
  readonly model: ModelFolder;
  readonly maxPositions: number | null;
}

async function readDescribed(folder: string, precision: Precision | undefined): Promise<Read> {
  const description = await readTrawlModelFile(folder);
  const { name, architecture, dimension, pooling, similarity, prefixes, maxTokens, batchInvariant } = description;
  const graphs = graphsOf(description);
  const precisions = [description.graph.precision, ...graphs.map((graph) => graph.precision)];
  const graph = choose(folder, graphs, precision ?? description.graph.precision);
  const files = description.files.map((file) => ({ ...file, path: resolve(folder, normalize(file.path)) }));
  for (const file of files) await checkSize(file);
  const graphPath = resolve(folder, graph.path);
  const externalData = (graph.externalData ?? []).map((path) => resolve(folder, path));
  const tokenizerPath = resolve(folder, description.tokenizer.path);
  const model: ModelFolder = {
    folder,
    identity: {
      name,
      sha256: await identitySha256([graphPath, ...externalData, tokenizerPath], files),
      architecture,
      dimension,
      pooling,
      normalize: description.normalize,
      similarity,
      prefixes: { query: prefixes.query, passage: prefixes.passage },
      maxTokens: { query: maxTokens.query, passage: maxTokens.passage },
      precision: graph.precision,
      batchInvariant,
    },
    graphPath,
    graphOutput: graph.output ?? null,
    tokenizerPath,
    externalData,
    precisions: [...new Set(precisions)],
    kind: description.kind ?? 'encoder',
    labels: description.labels ?? null,
    activation: description.activation ?? null,
    weightsSha256: description.weightsSha256 ?? null,
    files,
  };
  return { model, maxPositions: description.maxPositions ?? null };
}

async function readUndescribed(folder: string, precision: Precision | undefined): Promise<Read> {
  const { identity, graphPath, tokenizerPath, maxPositions } = await readTransformersFolder(folder);
  choose(folder, [{ precision: identity.precision }], precision ?? identity.precision);
  // The names that exporters give to the weights of graphs beyond 2 GiB.
  const externalData = [`${graphPath}_data`, `${graphPath}.data`].filter((path) => existsSync(path));
  const sha256 = await identitySha256([graphPath, ...externalData, tokenizerPath], []);
  const model: ModelFolder = {
    folder,
    identity: { ...identity, sha256 },
    graphPath,
    graphOutput: null,
    tokenizerPath,
    externalData,
    precisions: [identity.precision],
    kind: 'encoder',
    labels: null,
    activation: null,
    weightsSha256: null,
    files: [],
  };
  return { model, maxPositions };
}

function choose<G extends { readonly precision: Precision }>(
  folder: string,
  graphs: readonly G[],
  precision: Precision,
): G {
  const graph = graphs.find((candidate) => candidate.precision === precision);
  if (graph !== undefined) return graph;
  const present = graphs.map((candidate) => candidate.precision).join(', ');
  throw new TrawlError(
    'CONFIG_INVALID',
    `${folder} has no graph of precision ${precision}; it has ${present}. Choose one of these, or make the model again ` +
      'from its checkpoint with that precision.',
    { details: { precision, precisions: graphs.map((candidate) => candidate.precision) } },
  );
}

function checkKind(model: ModelFolder, wanted: ModelKind): void {
  if (model.kind === wanted) return;
  throw new TrawlError(
    'MODEL_INVALID',
    wanted === 'encoder'
      ? `${model.folder} is a cross-encoder: it scores pairs of query and passage and gives no vectors. Choose an encoder.`
      : `${model.folder} is an encoder: it gives vectors and does not score pairs. Choose a cross-encoder.`,
    { details: { kind: model.kind, wanted } },
  );
}

/** SHA-256 of the files' checksums written one after the other in hexadecimal. */
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
      `${file.path} has ${bytes} bytes; its description says ${file.bytes}. Fetch or make the model again.`,
      { details: { bytes, expectedBytes: file.bytes } },
    );
  }
}

function missingFile(path: string, cause: unknown): TrawlError {
  const reason = isNodeError(cause) && cause.code === 'ENOENT' ? 'is missing' : 'cannot be read';
  return new TrawlError('MODEL_INVALID', `${path} ${reason}. Fetch or make the model again.`, { cause });
}

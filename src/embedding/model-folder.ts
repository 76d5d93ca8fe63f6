import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join, normalize, resolve } from 'node:path';
import { isNodeError, TrawlError } from '../errors.ts';
import { sha256OfFile } from '../file-checksum.ts';
import type { ModelIdentity } from '../manifest/model-identity.ts';
import { cachedSha256OfFile, sha256OfText } from './model-checksum.ts';
import { locateModelFolder } from './model-location.ts';
import { applyOverrides, type ModelOverrides } from './model-overrides.ts';
import { readTransformersFolder } from './transformers-folder.ts';
import { readTrawlModelFile, TRAWL_MODEL_FILE } from './trawl-model-file.ts';

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
  /** Recorded files, absolute; empty where the folder has no trawl-model.json. */
  readonly files: readonly ModelFile[];
}

/**
 * Reads a model's description: `trawl-model.json`, or the config files of a sentence-transformers or Transformers
 * folder that holds an ONNX graph. The presence and size of recorded files are checked, their content is not
 * (`verifyModelFolder`). Errors: MODEL_NOT_FOUND, MODEL_INVALID, CONFIG_INVALID for overrides.
 */
export async function readModelFolder(nameOrPath: string, overrides: ModelOverrides = {}): Promise<ModelFolder> {
  const folder = locateModelFolder(nameOrPath);
  const hasDescription = existsSync(join(folder, TRAWL_MODEL_FILE));
  if (!hasDescription && !existsSync(join(folder, 'config.json'))) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${folder} is not a model folder: it has neither ${TRAWL_MODEL_FILE} nor config.json.`,
    );
  }
  const { model, maxPositions } = hasDescription ? await readDescribed(folder) : await readUndescribed(folder);
  return Object.freeze({ ...model, identity: applyOverrides(model.identity, overrides, maxPositions) });
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

async function readDescribed(folder: string): Promise<Read> {
  const description = await readTrawlModelFile(folder);
  const { name, architecture, dimension, pooling, similarity, prefixes, maxTokens, batchInvariant } = description;
  const files = description.files.map((file) => ({ ...file, path: resolve(folder, normalize(file.path)) }));
  for (const file of files) await checkSize(file);
  const graphPath = resolve(folder, description.graph.path);
  const tokenizerPath = resolve(folder, description.tokenizer.path);
  const model: ModelFolder = {
    folder,
    identity: {
      name,
      sha256: await identitySha256(graphPath, tokenizerPath, files),
      architecture,
      dimension,
      pooling,
      normalize: description.normalize,
      similarity,
      prefixes: { query: prefixes.query, passage: prefixes.passage },
      maxTokens: { query: maxTokens.query, passage: maxTokens.passage },
      precision: description.graph.precision,
      batchInvariant,
    },
    graphPath,
    graphOutput: description.graph.output ?? null,
    tokenizerPath,
    files,
  };
  return { model, maxPositions: null };
}

async function readUndescribed(folder: string): Promise<Read> {
  const { identity, graphPath, tokenizerPath, maxPositions } = await readTransformersFolder(folder);
  const sha256 = await identitySha256(graphPath, tokenizerPath, []);
  const model = { folder, identity: { ...identity, sha256 }, graphPath, graphOutput: null, tokenizerPath, files: [] };
  return { model, maxPositions };
}

/** SHA-256 of the two files' checksums written one after the other in hexadecimal. */
async function identitySha256(graphPath: string, tokenizerPath: string, files: readonly ModelFile[]): Promise<string> {
  const parts: string[] = [];
  for (const path of [graphPath, tokenizerPath]) {
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

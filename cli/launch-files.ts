import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { locateModelFolder } from '../src/embedding/model-location.ts';
import { TRAWL_MODEL_FILE } from '../src/embedding/trawl-model-file.ts';
import { TrawlError } from '../src/errors.ts';
import { sha256OfFile } from '../src/file-checksum.ts';
import { INDEX_MANIFEST_FILE } from '../src/manifest/index-manifest.ts';
import { parseModelSource } from './model-source.ts';

/** The files that a launch line means, where what it names is not quite what is there. */
export interface FoundFiles {
  /** In the order of their rows. */
  readonly paths: readonly string[];
  readonly remark: string | undefined;
}

/**
 * The file of that name, however its letters are cased (FlashRAG's builder lower-cases the names that its scripts then look
 * for); else, in the same folder, the pieces that a published index is downloaded as.
 */
export function findVectors(path: string): FoundFiles {
  const found = ignoringCase(path);
  if (found !== undefined) return found;
  const folder = dirname(resolve(path));
  const parts = listFolder(folder)
    .filter((name) => /^part_[a-z]{2}$/.test(name))
    .sort();
  if (parts.length === 0) return { paths: [path], remark: undefined };
  return {
    paths: parts.map((name) => join(folder, name)),
    remark: `${path} is not there; its pieces ${parts.join(', ')} are taken as they lie, without joining them.`,
  };
}

/** The file of that name, however its letters are cased; else the same with `.gz` or `.zst` behind it. */
export function findCorpus(path: string): FoundFiles {
  const found = ignoringCase(path);
  if (found !== undefined) return found;
  const packed = ['.gz', '.zst'].map((ending) => `${path}${ending}`).find((each) => existsSync(each));
  if (packed === undefined) return { paths: [path], remark: undefined };
  return { paths: [packed], remark: `${path} is not there; ${basename(packed)} is read without unpacking it first.` };
}

function ignoringCase(path: string): FoundFiles | undefined {
  if (existsSync(path)) return { paths: [path], remark: undefined };
  const folder = dirname(resolve(path));
  const wanted = basename(path).toLowerCase();
  const others = listFolder(folder).filter((name) => name.toLowerCase() === wanted);
  if (others.length !== 1) return undefined;
  return { paths: [join(folder, others[0]!)], remark: `${path} is not there; ${others[0]} is taken.` };
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Where the index of a file of vectors goes unless something else is said: `e5_Flat.index` → `e5_Flat.trawl` beside it. */
export function indexFolderOf(vectors: string): string {
  const file = basename(vectors).replace(/\.(?:index|bin|faiss|npy|memmap)$/, '');
  return join(dirname(vectors), `${file}.trawl`);
}

/** Whether an index is there that is newer than everything it was made from, as make would ask. */
export function isImported(folder: string, sources: readonly string[]): boolean {
  const made = modified(join(folder, INDEX_MANIFEST_FILE));
  return made !== undefined && sources.every((path) => (modified(path) ?? 0) <= made);
}

function modified(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}

/** A model that `trawl import` takes, and what `trawl model add` has to be given first; undefined where it is there. */
export interface LaunchModel {
  readonly model: string;
  readonly add: { readonly source: string; readonly name: string } | undefined;
  /** Most tokens that it takes, where it says so. */
  readonly positions?: number;
}

/**
 * What `--retriever_model` means: a model folder of ours or its name as it is; a hub id by the name of its repository; a
 * checkpoint by its folder's name and its weights' checksum, so that a retriever that is trained on is never mistaken for
 * the one before.
 *
 * @throws TrawlError MODEL_INVALID for a folder without weights, USAGE for what is neither.
 */
export async function findModel(text: string): Promise<LaunchModel> {
  if (!/[/\\]/.test(text) && known(text)) return ours(text);
  const source = parseModelSource(text);
  if (source.kind === 'hub') {
    return known(source.name) ? ours(source.name) : { model: source.name, add: { source: text, name: source.name } };
  }
  if (existsSync(join(source.folder, TRAWL_MODEL_FILE))) return ours(source.folder);
  const name = `${source.name.replaceAll(/[^\w.-]/g, '-')}-${(await weightsChecksum(source.folder)).slice(0, 12)}`;
  return known(name) ? ours(name) : { model: name, add: { source: source.folder, name } };
}

/** A model folder of ours. A description that cannot be read is for who opens it to say. */
function ours(model: string): LaunchModel {
  try {
    const description: unknown = JSON.parse(readFileSync(join(locateModelFolder(model), TRAWL_MODEL_FILE), 'utf8'));
    const { maxPositions: positions } = description as { maxPositions?: unknown };
    return { model, add: undefined, ...(typeof positions === 'number' ? { positions } : {}) };
  } catch {
    return { model, add: undefined };
  }
}

function known(name: string): boolean {
  try {
    return existsSync(join(locateModelFolder(name), TRAWL_MODEL_FILE));
  } catch {
    return false;
  }
}

/** Of the largest file of weights: those of a checkpoint change together. */
async function weightsChecksum(folder: string): Promise<string> {
  const weights = listFolder(folder)
    .filter((name) => /\.(?:safetensors|onnx)$/.test(name))
    .map((name) => join(folder, name))
    .concat(listFolder(join(folder, 'onnx')).map((name) => join(folder, 'onnx', name)))
    .sort((a, b) => statSync(b).size - statSync(a).size || (a < b ? -1 : 1));
  if (weights[0] === undefined) {
    throw new TrawlError('MODEL_INVALID', `${folder} has no weights: neither .safetensors nor .onnx is there.`);
  }
  return sha256OfFile(weights[0]);
}

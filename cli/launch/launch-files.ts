import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import { parseModelSource } from '../../indexer/model-import/model-source.ts';
import { vectorPaths } from '../../indexer/vector-files/open-vector-files.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { isSameJson } from '../../src/base/objects.ts';
import { fileState, hashFile, sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { locateModelFolder } from '../../src/encoder/model/model-location.ts';
import { TRAWL_MODEL_FILE } from '../../src/encoder/model/trawl-model-file.ts';
import { INDEX_MANIFEST_FILE } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest, readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import { within } from '../../src/search/opening/index-directory.ts';

/** The files found for a path in a launch line. */
export interface FoundFiles {
  /** In the order of their rows. The path itself if no file was found. */
  readonly paths: readonly string[];
  /** A sentence for the user if the files differ from the path. */
  readonly remark: string | undefined;
}

/**
 * Finds the file, ignoring case (FlashRAG's builder lower-cases names, its scripts do not), or else the pieces of a published index
 * in the same folder: part_aa, part_ab, ….
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
    remark: `${path} does not exist; using its pieces ${parts.join(', ')}, which need not be joined.`,
  };
}

/** Finds the file, ignoring case, or else the same name with `.gz` or `.zst` appended. */
export function findCorpus(path: string): FoundFiles {
  const found = ignoringCase(path);
  if (found !== undefined) return found;
  const packed = ['.gz', '.zst'].map((ending) => `${path}${ending}`).find((each) => existsSync(each));
  if (packed === undefined) return { paths: [path], remark: undefined };
  return { paths: [packed], remark: `${path} does not exist; using ${basename(packed)}, which need not be unpacked.` };
}

function ignoringCase(path: string): FoundFiles | undefined {
  if (existsSync(path)) return { paths: [path], remark: undefined };
  const folder = dirname(resolve(path));
  const wanted = basename(path).toLowerCase();
  const others = listFolder(folder).filter((name) => name.toLowerCase() === wanted);
  if (others.length !== 1) return undefined;
  return { paths: [join(folder, others[0]!)], remark: `${path} does not exist; using ${others[0]}.` };
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Default folder for the index of a vector file: `e5_Flat.trawl` beside `e5_Flat.index`. */
export function indexFolderOf(vectors: string): string {
  const file = basename(vectors).replace(/\.(?:index|bin|faiss|npy|memmap)$/, '');
  return join(dirname(vectors), `${file}.trawl`);
}

/** Default folder for the index of a corpus's words: `wiki-18.bm25.trawl` beside `wiki-18.jsonl.gz`. */
export function wordIndexFolderOf(corpus: string): string {
  const file = basename(corpus).replace(/(?:\.(?:jsonl?|tsv|parquet|gz|zst))+$/, '');
  return join(dirname(corpus), `${file}.bm25.trawl`);
}

/** Of an index that a launch line made: the states of its sources when they had the content that is in the index. */
const SOURCES_FILE = 'launch.json';

/** The files that a launch line makes an index of. */
export interface LaunchSources {
  readonly corpus: readonly string[];
  /** Empty for an index of words. */
  readonly vectors: readonly string[];
}

/**
 * Whether the index in the folder was made of these files, by their states, or else by their sizes and checksums, after which it records the
 * states. Times do not count: a corpus that is unpacked or synchronised keeps the time of its origin. A corpus that is gone is as before.
 */
export async function isImported(
  folder: string,
  sources: LaunchSources,
  note: (text: string) => void = () => undefined,
): Promise<boolean> {
  const states = sourceStates(sources);
  if (!existsSync(join(folder, INDEX_MANIFEST_FILE))) return false;
  if (isSameJson(states, recordedStates(folder))) return true;
  note(`Comparing ${folder} with the files it was made of, because they may have changed …`);
  let hasSame: boolean;
  try {
    hasSame = await hasContentOf(folder, sources);
  } catch (error) {
    if (error instanceof TrawlError && error.code.startsWith('INDEX_')) return false;
    throw error;
  }
  if (hasSame) recordSources(folder, states);
  return hasSame;
}

/** The files that are read for these paths, which may be folders or patterns. */
export function launchSources(corpus: readonly string[], vectors: readonly string[] = []): LaunchSources {
  return {
    corpus: corpus.flatMap((path) => filesAt(path, () => listCorpusFiles([path]).map((file) => file.path))),
    vectors: vectors.flatMap((path) => filesAt(path, () => vectorPaths(path))),
  };
}

/** A path without files stands for itself: a corpus may be gone, and what is missing is reported by the command that reads it. */
function filesAt(path: string, list: () => readonly string[]): readonly string[] {
  try {
    return list();
  } catch {
    return [path];
  }
}

type SourceStates = readonly { readonly path: string; readonly state: string | null }[];

export function sourceStates({ corpus, vectors }: LaunchSources): SourceStates {
  return [...corpus, ...vectors].map((path) => ({ path: resolve(path), state: fileState(path) ?? null }));
}

/** Without the record, the next launch compares the contents. */
export function recordSources(folder: string, states: SourceStates): void {
  try {
    writeFileSync(join(folder, SOURCES_FILE), JSON.stringify(states));
  } catch {
    // The index may be on a disk that this process only reads.
  }
}

function recordedStates(folder: string): unknown {
  try {
    return JSON.parse(readFileSync(join(folder, SOURCES_FILE), 'utf8'));
  } catch {
    return undefined;
  }
}

async function hasContentOf(folder: string, { corpus, vectors }: LaunchSources): Promise<boolean> {
  const { corpus: recorded, shards, model, bm25 } = readIndexManifest(folder);
  const { files } = recorded;
  if (files.length !== corpus.length || (vectors.length === 0 ? bm25 : model) == null) return false;
  for (const [i, path] of corpus.entries()) if (!(await hasContent(path, files[i]!))) return false;
  if (vectors.length === 0) return true;
  const named = new Set(vectors.map((path) => resolve(path)));
  for (const { path: shard } of shards) {
    for (const { path, offset, bytes, adopted } of readShardManifest(within(folder, shard)).vectors) {
      const file = resolve(within(within(folder, shard), path));
      if (adopted === undefined || !named.has(file)) return false;
      const part = { offset, bytes };
      if (!(await hasContent(file, { bytes: adopted.fileBytes, sha256: adopted.sha256 }, part))) return false;
    }
  }
  return true;
}

async function hasContent(
  path: string,
  { bytes, sha256 }: { readonly bytes: number; readonly sha256: string },
  part?: { readonly offset: number; readonly bytes: number },
): Promise<boolean> {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return true;
  return stats.size === bytes && sha256 === (await sha256OfFile(path, undefined, undefined, part));
}

/** A model for `trawl import`, and the arguments of the `trawl model add` that must come first, if any. */
export interface LaunchModel {
  readonly model: string;
  readonly add: { readonly source: string; readonly name: string } | undefined;
  /** The model's token limit, if known. */
  readonly positions?: number;
}

/**
 * Resolves `--retriever_model`. A Trawl model folder or its name is used unchanged. A hub id gets the name of its repository. A
 * checkpoint gets the name of its folder and part of its weights' checksum, so that the name changes with further training.
 *
 * @throws TrawlError MODEL_INVALID for a folder without weights, USAGE for anything else.
 */
export async function findModel(text: string): Promise<LaunchModel> {
  if (!/[/\\]/.test(text) && known(text)) return existingModel(text);
  const source = parseModelSource(text);
  if (source.type === 'hub') {
    return known(source.name)
      ? existingModel(source.name)
      : { model: source.name, add: { source: text, name: source.name } };
  }
  if (existsSync(join(source.folder, TRAWL_MODEL_FILE))) return existingModel(source.folder);
  const name = `${source.name.replaceAll(/[^\w.-]/g, '-')}-${(await checkpointChecksum(source.folder)).slice(0, 12)}`;
  return known(name) ? existingModel(name) : { model: name, add: { source: source.folder, name } };
}

/** Ignores an error in the model's description; the command that opens the model reports it. */
function existingModel(model: string): LaunchModel {
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

/**
 * A checksum of the largest weights file, which is enough because training changes all weights, and of the settings: the files of text
 * beside the weights and in the folders there.
 */
async function checkpointChecksum(folder: string): Promise<string> {
  const weights = listFolder(folder)
    .filter((name) => /\.(?:safetensors|onnx)$/.test(name))
    .map((name) => join(folder, name))
    .concat(listFolder(join(folder, 'onnx')).map((name) => join(folder, 'onnx', name)))
    .sort((a, b) => statSync(b).size - statSync(a).size || (a < b ? -1 : 1));
  if (weights[0] === undefined) {
    throw new TrawlError('MODEL_INVALID', `${folder} has no weights: expected a .safetensors or .onnx file.`);
  }
  const below = listFolder(folder).flatMap((name) => listFolder(join(folder, name)).map((file) => join(name, file)));
  const settings = [...listFolder(folder), ...below].filter((name) => /\.(?:json|txt)$/.test(name));
  const hash = createHash('sha256');
  await hashFile(hash, weights[0], {});
  for (const name of settings.sort()) {
    hash.update(`\0${name}\0`);
    await hashFile(hash, join(folder, name), {});
  }
  return hash.digest('hex');
}

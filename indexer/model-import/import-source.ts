import { basename, join } from 'node:path';
import { cachedRepository } from '../../src/encoder/model/hub-cache.ts';
import {
  type JsonObject,
  readJsonFile,
  readJsonFileIfPresent,
  readJsonIfPresent,
} from '../../src/encoder/model/json-file.ts';
import { type StatedPooling, transformerFolder } from '../../src/encoder/model/transformers-folder.ts';

/** What the config files of a checkpoint folder say, and what the user says of it. */
export interface ImportSource {
  readonly folder: string;
  /** The folder of config.json, weights and tokenizer: the same, or one in it that modules.json names. */
  readonly transformer: string;
  /** Names of the model: those that the caller knows, such as its id on the hub, and the folder's own. */
  readonly names: readonly string[];
  readonly configPath: string;
  readonly config: JsonObject;
  /** Classes in modules.json with their Python modules, in order; empty without the file. */
  readonly modules: readonly string[];
  /** Content of config_sentence_transformers.json; empty without the file. */
  readonly sentenceTransformers: JsonObject;
  readonly pooling: StatedPooling | undefined;
}

/** @throws TrawlError MODEL_INVALID if config.json is missing or a file is malformed. */
export async function readImportSource(
  folder: string,
  knownNames: readonly string[],
  pooling: StatedPooling | undefined,
): Promise<ImportSource> {
  const transformer = await transformerFolder(folder);
  const configPath = join(transformer, 'config.json');
  return {
    folder,
    transformer,
    names: [...knownNames, cachedRepository(folder)?.id ?? basename(folder)],
    configPath,
    config: await readJsonFile(configPath),
    modules: await readModuleTypes(folder),
    sentenceTransformers: (await readJsonFileIfPresent(join(folder, 'config_sentence_transformers.json'))) ?? {},
    pooling,
  };
}

/** Names that may tell the family of the model: its own, and the name of the checkpoint that it was trained from. */
export function familyNames({ names, config }: ImportSource): readonly string[] {
  return [...names, String(config._name_or_path ?? '')];
}

/** The classes that modules.json lists, with their Python modules, in order; empty without the file. */
export async function readModuleTypes(folder: string): Promise<readonly string[]> {
  const listed = await readJsonIfPresent(join(folder, 'modules.json'));
  return Array.isArray(listed) ? listed.map((module: { type?: unknown } | null) => String(module?.type)) : [];
}

/** A class without its Python module, which differs between versions of sentence-transformers. */
export function className(type: string): string {
  return type.split('.').at(-1)!;
}

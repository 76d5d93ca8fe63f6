import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { TrawlError } from '../../base/errors.ts';
import { foreignFile, headOf } from '../../base/files/foreign-file.ts';
import { packageRoot } from '../../base/package-root.ts';
import { TRAWL_MODEL_FILE } from './trawl-model-file.ts';

/** Folders in which model names are looked up, in this order: the package's `models`, `models` in the working directory. */
function modelCollections(): readonly string[] {
  return [...new Set([join(packageRoot, 'models'), resolve('models')])];
}

export function listModels(collections: readonly string[] = modelCollections()): readonly string[] {
  const names = new Set<string>();
  for (const collection of collections) {
    if (!isFolder(collection)) continue;
    for (const name of readdirSync(collection)) {
      if (isModelFolder(join(collection, name))) names.add(name);
    }
  }
  return [...names].sort();
}

/**
 * The absolute folder of a model. A text with a slash, `.` and `..` are paths; any other text is a name in one of the collections.
 * Throws MODEL_NOT_FOUND with the searched folders and the models found.
 */
export function locateModelFolder(nameOrPath: string, collections: readonly string[] = modelCollections()): string {
  const isPath = /[/\\]/.test(nameOrPath) || nameOrPath === '.' || nameOrPath === '..';
  const candidates = isPath ? [resolve(nameOrPath)] : collections.map((collection) => join(collection, nameOrPath));
  // An empty name would find the collection itself.
  const found = nameOrPath === '' ? undefined : candidates.find(isFolder);
  if (found !== undefined) return found;

  const file = candidates.find((candidate) => statSync(candidate, { throwIfNoEntry: false })?.isFile());
  if (nameOrPath !== '' && file !== undefined) throw fileForFolder(file);
  const names = listModels(collections);
  const hubId = isPath ? nameOrPath : `ORGANISATION/${nameOrPath}`;
  const add = /^[\w-][\w.-]*\/[\w.-]+$/.test(hubId)
    ? ` To add a model from the Hugging Face hub: \`trawl model add ${hubId}\`.`
    : '';
  const endpoint = /^[\w.-]+:\d+(\/|$)/.test(nameOrPath)
    ? ` For a server of embeddings write http://${nameOrPath}.`
    : '';
  const available = names.length === 0 ? 'No models found' : `Models found: ${names.join(', ')}`;
  const lookedAt = candidates.join(', ');
  throw new TrawlError(
    'MODEL_NOT_FOUND',
    isPath
      ? `Model folder ${lookedAt} not found. ${available} (in ${collections.join(', ')}). Use one of these names or the path of a model folder.${add}${endpoint}`
      : `Model "${nameOrPath}" not found: looked for ${lookedAt}. ${available}. To use another folder, write its path with a slash, such as ./${nameOrPath || 'my-model'}.${add}${endpoint}`,
    { details: { lookedAt: candidates, available: names } },
  );
}

function fileForFolder(file: string): TrawlError {
  const foreign = foreignFile(headOf(file));
  const remedy = foreign?.remedy ?? 'Name the folder of the model.';
  return new TrawlError(
    'MODEL_NOT_FOUND',
    `${file} is ${foreign?.what ?? 'a file'}; expected the folder of a model. ${remedy}`,
    { details: { lookedAt: [file] } },
  );
}

function isModelFolder(folder: string): boolean {
  return existsSync(join(folder, TRAWL_MODEL_FILE)) || existsSync(join(folder, 'config.json'));
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { TrawlError } from '../errors.ts';
import { packageRoot } from '../package-root.ts';
import { TRAWL_MODEL_FILE } from './trawl-model-file.ts';

/** Where names are looked up, in this order: the models that came with the package, then those of the working folder. */
export function modelCollections(): readonly string[] {
  return [...new Set([join(packageRoot, 'models'), resolve('models')])];
}

/** Names of the models in the collections, sorted. */
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
 * The absolute folder of a model. Text with a slash (or `.` and `..`) is a path; anything else is a name in one of the
 * collections. Throws MODEL_NOT_FOUND with what was looked at and what there is.
 */
export function locateModelFolder(nameOrPath: string, collections: readonly string[] = modelCollections()): string {
  const isPath = /[/\\]/.test(nameOrPath) || nameOrPath === '.' || nameOrPath === '..';
  const candidates = isPath ? [resolve(nameOrPath)] : collections.map((collection) => join(collection, nameOrPath));
  // The empty name would be the collection itself.
  const found = nameOrPath === '' ? undefined : candidates.find(isFolder);
  if (found !== undefined) return found;

  const names = listModels(collections);
  const hubId = isPath ? nameOrPath : `ORGANISATION/${nameOrPath}`;
  const add = /^[\w-][\w.-]*\/[\w.-]+$/.test(hubId)
    ? ` One of the Hugging Face hub comes by \`trawl model add ${hubId}\`.`
    : '';
  const available = names.length === 0 ? 'There are no models there' : `Models found: ${names.join(', ')}`;
  const lookedAt = candidates.join(', ');
  throw new TrawlError(
    'MODEL_NOT_FOUND',
    isPath
      ? `There is no model folder ${lookedAt}. ${available} (in ${collections.join(', ')}); give one of those names or the path of a folder.${add}`
      : `There is no model named "${nameOrPath}": looked for ${lookedAt}. ${available}. For a folder elsewhere give its path with a slash, such as ./${nameOrPath || 'my-model'}.${add}`,
    { details: { lookedAt: candidates, available: names } },
  );
}

function isModelFolder(folder: string): boolean {
  return existsSync(join(folder, TRAWL_MODEL_FILE)) || existsSync(join(folder, 'config.json'));
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

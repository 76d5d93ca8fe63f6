import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { asTrawlError, TrawlError } from '../../src/base/errors.ts';
import { readModelFolder, verifyModelFolder } from '../../src/encoder/model/model-folder.ts';
import { locateModelFolder } from '../../src/encoder/model/model-location.ts';
import { readTrawlModelFile, TRAWL_MODEL_FILE } from '../../src/encoder/model/trawl-model-file.ts';
import { sourceOf } from './model-facts.ts';

/** Compares the files of a model with their checksums. */
export async function verifyModel(
  nameOrPath: string,
): Promise<{ name: string; folder: string; problems: string[]; files: number }> {
  const folder = locateModelFolder(nameOrPath);
  try {
    const model = await readModelFolder(folder, {}, { kind: 'any', checksums: false });
    const files = await verifyModelFolder(model);
    return { name: model.identity.name, folder, problems: [], files };
  } catch (error) {
    const { code, message } = asTrawlError(error);
    if (code !== 'MODEL_INVALID') throw error;
    return { name: nameOrPath, folder, problems: [message], files: 0 };
  }
}

/** @throws TrawlError USAGE for a folder that `trawl model add` did not make. */
export async function removeModel(nameOrPath: string): Promise<{ name: string; folder: string }> {
  const folder = locateModelFolder(nameOrPath);
  // The description alone, so that a model can be deleted whose other files are damaged or missing.
  const described = existsSync(join(folder, TRAWL_MODEL_FILE)) ? await readTrawlModelFile(folder) : undefined;
  if (described === undefined || sourceOf(described) === null) {
    throw new TrawlError(
      'USAGE',
      `${folder} was not made by trawl model add, so it is not deleted. If you no longer need it, delete the folder yourself.`,
    );
  }
  await rm(folder, { recursive: true });
  return { name: described.name, folder };
}

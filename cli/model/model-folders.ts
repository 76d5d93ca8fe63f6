import { rm } from 'node:fs/promises';
import { readModelFolder, verifyModelFolder } from '../../src/embedding/model/model-folder.ts';
import { locateModelFolder } from '../../src/embedding/model/model-location.ts';
import { asTrawlError, TrawlError } from '../../src/errors.ts';
import { factsOf } from './model-facts.ts';

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
  // Without checksums, so that a damaged model can be deleted.
  const { name, source } = await factsOf(folder, { checksums: false });
  if (source === null) {
    throw new TrawlError(
      'USAGE',
      `${folder} was not made by trawl model add, so it is not deleted. If you no longer need it, delete the folder yourself.`,
    );
  }
  await rm(folder, { recursive: true });
  return { name, folder };
}

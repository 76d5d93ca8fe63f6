import { join } from 'node:path';
import { readJsonIfPresent } from '../../src/encoder/model/json-file.ts';

/** The classes in a folder's modules.json with their Python modules, in order; empty without the file. */
export async function moduleTypes(folder: string): Promise<readonly string[]> {
  const listed = await readJsonIfPresent(join(folder, 'modules.json'));
  return Array.isArray(listed) ? listed.map((module: { type?: unknown } | null) => String(module?.type)) : [];
}

/** The same without the Python modules, which differ between versions of sentence-transformers. */
export async function moduleNames(folder: string): Promise<readonly string[]> {
  return (await moduleTypes(folder)).map((type) => type.split('.').at(-1)!);
}

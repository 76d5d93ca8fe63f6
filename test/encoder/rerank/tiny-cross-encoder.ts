import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { importModel } from '../../../indexer/model-import/import-model.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { tinyCrossEncoder } from '../../helpers/tiny-checkpoint.ts';

/** Writes the checkpoint of a cross-encoder with random weights and a limit of 128 tokens. */
export function writeCrossEncoder(folder: string, seed = 1): void {
  mkdirSync(folder, { recursive: true });
  for (const [path, content] of Object.entries(tinyCrossEncoder(seed))) writeFileSync(join(folder, path), content);
}

/** The folder of such a model after its import, with the name `tiny-reranker`. */
export async function importedCrossEncoder(t: TestContext): Promise<string> {
  const folder = await tempFolder(t);
  const checkpoint = join(folder, 'checkpoint');
  writeCrossEncoder(checkpoint);
  const out = join(folder, 'model');
  await importModel(checkpoint, { out, name: 'tiny-reranker', precisions: ['float32'] });
  return out;
}

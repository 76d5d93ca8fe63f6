import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { tinyCheckpoint } from '../helpers/tiny-checkpoint.ts';

/** A tiny BERT in float32 and bfloat16. */
export async function bfloat16Model(folder: string): Promise<string> {
  const source = join(folder, 'checkpoint');
  for (const [name, bytes] of Object.entries(tinyCheckpoint())) {
    await mkdir(dirname(join(source, name)), { recursive: true });
    await writeFile(join(source, name), bytes);
  }
  const precisions = ['float32', 'bfloat16'] as const;
  return (await importModel(source, { out: join(folder, 'model', 'tiny'), precisions })).folder;
}

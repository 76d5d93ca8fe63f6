import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { type ImportOptions, importModel } from '../../model-import/import-model.ts';
import { openEncoder } from '../../src/embedding/open-encoder.ts';
import type { TextEncoder } from '../../src/embedding/text-encoder.ts';
import type { Precision } from '../../src/manifest/model-identity.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { tinyCheckpoint } from '../helpers/tiny-checkpoint.ts';

const WORDS =
  'a river in the north of seven old towns which is where he was born and two of them were seen by people'.split(' ');

/** Texts of 1 to 45 words. */
export const textsOf = (count: number): string[] =>
  Array.from({ length: count }, (_, i) =>
    Array.from({ length: 1 + ((i * 7) % 45) }, (_, at) => WORDS[(i * 5 + at * (1 + (i % 3))) % WORDS.length]).join(' '),
  );

export async function writeFiles(folder: string, files: Readonly<Record<string, Buffer>>): Promise<string> {
  for (const [name, bytes] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), bytes);
  }
  return folder;
}

/** Imports a tiny BERT and returns its folder; `change` edits the files of the checkpoint before. */
export async function tinyBert(
  t: TestContext,
  options: Pick<ImportOptions, 'precisions' | 'int8'>,
  change: (files: Record<string, Buffer>) => void = () => {},
): Promise<string> {
  const folder = await tempFolder(t);
  const files = tinyCheckpoint();
  change(files);
  const source = await writeFiles(join(folder, 'checkpoint'), files);
  return (await importModel(source, { out: join(folder, 'tiny'), ...options })).folder;
}

export async function opened(t: TestContext, model: string, precision: Precision, workers = 1): Promise<TextEncoder> {
  const encoder = await openEncoder(model, { precision, workers });
  t.after(() => encoder.close());
  return encoder;
}

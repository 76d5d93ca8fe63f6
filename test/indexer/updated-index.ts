import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { build, writeCorpus } from './build.ts';
import { searchIndex, type Update, update } from './update.ts';

const loaded = loadKernel();
export const kernel = loaded.ok ? loaded.kernel : undefined;
export const skip = loaded.ok ? false : `the native engine is not available: ${loaded.reason}`;

export interface Row {
  readonly id: number | string;
  readonly contents: string;
  readonly note?: string;
}

export const row = (id: number | string, contents = `passage ${id}`): Row => ({ id, contents });
export const rows = (...ids: number[]): Row[] => ids.map((id) => row(id));

/** An index of some passages, and a function that updates it to others. */
export async function indexed(
  t: TestContext,
  passages: readonly object[],
  options: Partial<Parameters<typeof build>[0]> = {},
) {
  const folder = await tempFolder(t);
  const out = join(folder, 'ix');
  let files = 0;
  const corpusOf = (content: readonly object[] | string): string[] =>
    writeCorpus(folder, { [`corpus-${files++}.jsonl`]: content });
  await build({ corpus: corpusOf(passages), out, kernel, ...options });
  const to = (content: readonly object[] | string, more: Partial<Update> = {}) =>
    update({ corpus: corpusOf(content), out, kernel, ...more });
  return { folder, out, corpusOf, to };
}

/** The ids of the passages that a search finds, by row. */
export async function liveIds(out: string): Promise<Record<number, unknown>> {
  const found = await searchIndex(out, 'any', 1_000);
  return Object.fromEntries(found.map(({ row, document }) => [row, (JSON.parse(document) as Row).id]).sort());
}

/** A hit without its row, which a compaction changes. */
export function withoutRow({ score, document }: { score: number; document: string }): object {
  return { score, document };
}

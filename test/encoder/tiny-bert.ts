import assert from 'node:assert/strict';
import { mkdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { type ImportOptions, importModel } from '../../indexer/model-import/import-model.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { EncoderPools } from '../../src/encoder/pool/encoder-pools.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { EnginePrecision } from '../../src/engine/native/encoder-functions.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { runModule } from '../helpers/run-module.ts';
import { sharedData } from '../helpers/shared-data.ts';
import { vectorsOf } from '../helpers/smallest-cosine.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { tinyCheckpoint } from '../helpers/tiny-checkpoint.ts';
import { trawlError } from '../helpers/trawl-error.ts';

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

/** Asserts that an encoder fails, and its process goes on, when the file of its weights is truncated; a new one over the old file works. */
export async function assertNoticesTruncation(t: TestContext, model: string, precision: Precision, file: string) {
  const path = join(model, file);
  const bytes = await readFile(path);
  const pools = new EncoderPools();
  const open = () => openEncoder(model, { precision, workers: 2, pools });
  const encoder = await open();
  t.after(() => encoder.close());
  const outcomeOf = async (text: string, by = encoder) =>
    (await by.encode([text], { inputType: 'query' })).outcomes[0]!;
  assert.equal((await outcomeOf('a river')).ok, true);
  await truncate(path, 4096);
  for (const text of ['north', 'south']) {
    const outcome = await outcomeOf(text);
    assert.ok(!outcome.ok);
    assert.ok(trawlError('FILE_CHANGED', new RegExp(`${file} has 4096 bytes`))(outcome.error));
    assert.equal(encoder.failure?.code, 'FILE_CHANGED');
  }
  await writeFile(path, bytes);
  const again = await open();
  t.after(() => again.close());
  assert.equal((await outcomeOf('north', again)).ok, true);
}

/** Asserts that a text has the same bits alone and with others, on one encoder thread and on two, which divide a lone text. */
export async function assertSameBitsInAnyBatch(
  t: TestContext,
  model: string,
  precision: EnginePrecision,
): Promise<void> {
  const texts = textsOf(80);
  const one = await opened(t, model, precision);
  const two = await opened(t, model, precision, 2);
  assert.equal(one.identity.batchInvariant, true);
  const together = await vectorsOf(one, texts);
  assert.deepEqual(await vectorsOf(two, texts), together);
  const { dimension } = one.identity;
  for (const [i, text] of texts.entries()) {
    const expected = together.slice(i * dimension, (i + 1) * dimension);
    for (const encoder of [one, two]) assert.deepEqual(await vectorsOf(encoder, [text]), expected, text);
  }
}

/** 200 passages of Wikipedia. */
export async function wikiPassages(): Promise<string[]> {
  const lines = (await readFile(sharedData('pool_wiki_dev/corpus.jsonl'), 'utf8')).split('\n');
  return Array.from({ length: 200 }, (_, i) => (JSON.parse(lines[i * 390]!) as { contents: string }).contents);
}

/**
 * Runs the engine's pass once with each instruction set of the searches, chosen by TRAWL_ISA. `expected`: that of the pass, by that of the
 * searches; others choose the fastest.
 */
export function assertSameBitsWithEachIsa(
  weights: string,
  precision: EnginePrecision,
  expected: Readonly<Record<string, string>>,
): void {
  const loaded = loadKernel();
  const searches = loaded.ok ? loaded.kernel.isas().filter(({ available }) => available) : [];
  const hashes = searches.map(({ name }) => {
    const code = `
      const { loadKernel } = await import('#root/src/engine/native/kernel.js');
      const { createHash } = await import('node:crypto');
      const { openNativeSession } = await import('#root/src/encoder/inference/native-session.js');
      const { kernel } = loadKernel();
      const { openBert } = kernel;
      let bert;
      kernel.openBert = (...values) => (bert = openBert(...values));
      const session = openNativeSession(${JSON.stringify(weights)}, ${JSON.stringify(precision)});
      const ids = Int32Array.from({ length: 14 }, (_, i) => 999 + 31 * i);
      const { data } = await session.run({ ids, rows: 2, length: 7, tokens: [7, 7] }, 1);
      const hash = createHash('sha256').update(new Uint8Array(data.buffer)).digest('hex');
      console.log(kernel.bertFacts(bert).isa, hash);
    `;
    const { status, stdout, stderr } = runModule(code, { TRAWL_ISA: name });
    assert.equal(status, 0, stderr);
    const [isa, hash] = stdout.trim().split(' ');
    if (expected[name] !== undefined) assert.equal(isa, expected[name]);
    return hash;
  });
  assert.ok(hashes.length > 0);
  assert.deepEqual([...new Set(hashes)], [hashes[0]]);
}

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import { openModelEncoder } from '../../src/encoder/open-encoder.ts';
import { runs } from '../helpers/runs.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { imported } from '../indexer/model-import/imported-model.ts';
import { tinyCheckpoint } from '../indexer/model-import/tiny-checkpoint.ts';
import { toyModel } from './model-fixtures.ts';

/** Further models to test, by name or folder: TRAWL_TEST_MODELS, separated by commas. */
const MORE = (process.env.TRAWL_TEST_MODELS ?? '').split(',').filter((name) => name !== '');
const MODELS = [
  'toy',
  ...(existsSync(join(packageRoot, 'models/token-average-256')) ? ['token-average-256'] : []),
  ...MORE,
];

for (const name of MODELS) {
  for (const inputType of ['query', 'passage'] as const) {
    test(`a text has the same vector, bit for bit, in any order, batch and number of workers: ${name}, ${inputType}`, async (t) => {
      const folder = name === 'toy' ? await toyModel(t) : name;
      const { precisions } = await readModelFolder(folder);
      const lines = (await readFile(join(packageRoot, 'corpus/sample/passages.jsonl'), 'utf8')).trim().split('\n');
      const texts = ['', 'a', ...lines.slice(0, MORE.includes(name) ? 60 : runs(80, 270))];
      const random = seededRandom(11);
      for (const precision of precisions.filter((each) => each !== 'float16')) {
        const model = await readModelFolder(folder, {}, { precision });
        const first = new Map<string, Float32Array>();
        for (const workers of [1, 2, 3]) {
          const pool = await openModelEncoder({ model, workers });
          t.after(() => pool.close());
          const order = texts.map((text) => ({ text, at: random() })).sort((a, b) => a.at - b.at);
          const { vectors } = await pool.encode(
            order.map(({ text }) => text),
            { inputType },
          );
          for (const [i, { text }] of order.entries()) {
            const vector = vectors.slice(i * pool.dimension, (i + 1) * pool.dimension);
            assert.deepEqual(vector, first.get(text) ?? vector, `${precision}, ${workers} workers`);
            first.set(text, vector);
          }
          await pool.close();
        }
      }
    });
  }
}

/** One to 60 words of one token each. */
const SHORT_TEXTS = Array.from({ length: runs(60, 180) }, (_, i) =>
  Array.from(
    { length: 1 + (i % 60) },
    (_, word) => 'abcdefghijklmnopqrstuvwxyz'[(i * 7 + word * (1 + (i % 5))) % 26],
  ).join(' '),
);

for (const name of MODELS) {
  test(`short texts have the same vectors, bit for bit, alone and when many calls run at once: ${name}`, async (t) => {
    const folder = name === 'toy' ? await toyModel(t) : name;
    const { precisions } = await readModelFolder(folder);
    for (const precision of precisions.filter((each) => each !== 'float16')) {
      const pool = await openModelEncoder({ model: await readModelFolder(folder, {}, { precision }), workers: 2 });
      t.after(() => pool.close());
      const alone: Float32Array[] = [];
      for (const text of SHORT_TEXTS) alone.push((await pool.encode([text], { inputType: 'query' })).vectors);
      const [together, ...single] = await Promise.all([
        pool.encode(SHORT_TEXTS, { inputType: 'query' }),
        ...SHORT_TEXTS.map((text) => pool.encode([text], { inputType: 'query' })),
      ]);
      for (const [i, vector] of alone.entries()) {
        assert.deepEqual(single[i]!.vectors, vector, `${precision}: ${SHORT_TEXTS[i]}`);
        const row = together!.vectors.slice(i * pool.dimension, (i + 1) * pool.dimension);
        assert.deepEqual(row, vector, `${precision}: ${SHORT_TEXTS[i]}`);
      }
      await pool.close();
    }
  });
}

test('texts of one token have the same vectors, bit for bit, alone and in a batch, with and without shared weights', async (t) => {
  const checkpoint = await tinyCheckpoint(t);
  const tokenizerPath = join(checkpoint.folder, 'tokenizer.json');
  const tokenizer = JSON.parse(await readFile(tokenizerPath, 'utf8')) as Record<string, unknown>;
  // Without a post-processor no special tokens are added, so a letter is one token.
  await writeFile(tokenizerPath, JSON.stringify({ ...tokenizer, post_processor: null }));
  const { folder } = await imported(checkpoint);
  const texts = [...'abcdefghijklmnopqrstuvwxyz'];
  for (const shareWeights of [true, false]) {
    const pool = await openModelEncoder({ model: await readModelFolder(folder), workers: 1, shareWeights });
    t.after(() => pool.close());
    const { vectors, outcomes } = await pool.encode(texts, { inputType: 'query' });
    for (const [i, text] of texts.entries()) {
      const outcome = outcomes[i]!;
      assert.equal(outcome.ok && outcome.tokens, 1);
      const alone = await pool.encode([text], { inputType: 'query' });
      assert.deepEqual(vectors.slice(i * pool.dimension, (i + 1) * pool.dimension), alone.vectors, text);
    }
    await pool.close();
  }
});

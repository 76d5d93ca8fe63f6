import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { openCrossEncoder } from '../../src/encoder/cross-encoder.ts';
import { runTorchPeer, withoutTorch } from '../helpers/peers.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { rerankerTokenizer } from '../indexer/model-import/tiny-reranker.ts';

const SQUAD = 'squad_v11_dev';
const HARD: readonly (readonly [string, string])[] = [
  ['', ''],
  ['ends in space ', ' begins with one'],
  ['two\n\nlines\n', '\n\ttabs\r\n'],
  ['(x)?!', '—…“quoted”'],
  ['什么是人工智能？', '人工智能。'],
  ['special <|im_end|> inside', '<think> </think> <|endoftext|>'],
  ['\u{1F600} e\u0301', 'caf\u00E9 \u00A0 1234567890'],
  ['what is it', 'a passage that is longer than the limit '.repeat(200)],
];

for (const tied of [true, false]) {
  test(`Qwen3-Reranker scores pairs as its model card does with torch: ${tied ? 'the word table as head' : 'a head of its own'}`, {
    skip: withoutTorch() || withoutSharedData(SQUAD),
  }, async (t) => {
    const folder = await tempFolder(t);
    const tokenizer = join(folder, 'tokenizer.json');
    await writeFile(tokenizer, rerankerTokenizer());
    const checkpoint = join(folder, 'Qwen3-Reranker-random');
    const pairs = [...HARD, ...(await squadPairs(40))];
    const request = { tokenizer, folder: checkpoint, tied, pairs, maxTokens: 1024 };
    const expected = (await runTorchPeer('yes_no_reranker.py', request)) as [number, number][];
    assert.ok(new Set(expected.map(([score]) => score.toFixed(3))).size > 20, 'the scores differ');
    const { folder: model } = await importModel(checkpoint, { out: join(folder, 'model'), precisions: ['float32'] });
    const reranker = await openCrossEncoder(model, { workers: 2 });
    t.after(() => reranker.close());
    const inputs = pairs.map(([query, passage]) => ({ query, passage }));
    for (const [at, activation] of ['model', 'none'].entries()) {
      const { scores, outcomes } = await reranker.scorePairs(inputs, { activation: activation as 'model' | 'none' });
      assert.ok(outcomes.every(({ ok }) => ok));
      const worst = expected.reduce((most, values, i) => Math.max(most, Math.abs(scores[i]! - values[at]!)), 0);
      t.diagnostic(`${activation === 'model' ? 'probability' : 'logit'}: ${worst.toExponential(1)} at most`);
      assert.ok(worst <= 1e-4, `${activation}: ${worst}`);
    }
  });
}

/** Questions with paragraphs of the same corpus. */
async function squadPairs(count: number): Promise<[string, string][]> {
  const lines = async (name: string) => (await readFile(sharedData(`${SQUAD}/${name}.jsonl`), 'utf8')).split('\n');
  const [questions, corpus] = [await lines('queries'), await lines('corpus')];
  return Array.from({ length: count }, (_, i) => [
    (JSON.parse(questions[i * 100]!) as { question: string }).question,
    (JSON.parse(corpus[i * 20]!) as { contents: string }).contents,
  ]);
}

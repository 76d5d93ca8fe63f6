import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canGroupTexts } from '../../../src/encoder/inference/grouping-trial.ts';
import type { TokenizedText } from '../../../src/encoder/tokenizer/truncation.ts';

const tokenizer = {
  contentIds: (text: string) => [...text].map((character) => character.codePointAt(0)!),
  frame: (ids: readonly number[]) => [1, ...ids, 2],
};
const sum = ({ ids }: TokenizedText) => ids.reduce((total, id, at) => total + Math.fround(id / (at + 3)), 0);

test('a graph that computes each text independently may run texts in groups', async () => {
  const sizes: [number, number][] = [];
  const together = await canGroupTexts(tokenizer, async (texts) => {
    sizes.push([texts.length, texts[0]!.ids.length]);
    assert.ok(texts.every(({ ids }) => ids.length === texts[0]!.ids.length));
    return texts.map((text) => Float32Array.of(sum(text)));
  });
  assert.equal(together, true);
  assert.ok(sizes.some(([rows]) => rows > 1) && sizes.some(([rows]) => rows === 1));
  assert.ok(sizes.every(([rows, length]) => rows * length <= 128));
});

test('a graph whose vectors depend on the batch may not run texts in groups, even if one bit of one row differs', async () => {
  const quantized = canGroupTexts(tokenizer, async (texts) => {
    const largest = Math.max(...texts.flatMap(({ ids }) => ids));
    return texts.map((text) => Float32Array.of(Math.round((sum(text) / largest) * 127)));
  });
  assert.equal(await quantized, false);
  const oneBit = canGroupTexts(tokenizer, async (texts) =>
    texts.map((text, row) => Float32Array.of(row === texts.length - 1 && row > 20 ? 1 + 2 ** -23 : 1, sum(text))),
  );
  assert.equal(await oneBit, false);
  const zeros = canGroupTexts(tokenizer, async (texts) => texts.map((_, row) => Float32Array.of(row === 0 ? 0 : -0)));
  assert.equal(await zeros, false);
});

test('a graph that fails on batches of several texts may not run texts in groups', async () => {
  const found = await canGroupTexts(tokenizer, async (texts) => {
    if (texts.length > 1) throw new Error('a batch of one only');
    return [Float32Array.of(1)];
  });
  assert.equal(found, false);
});

test('if the tokenizer gives all trial words the same tokens, texts may not run in groups', async () => {
  const found = await canGroupTexts({ ...tokenizer, contentIds: () => [7, 7, 7, 8] }, async (texts) =>
    texts.map(() => Float32Array.of(1)),
  );
  assert.equal(found, false);
});

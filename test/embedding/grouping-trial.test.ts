import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tryGrouping } from '../../src/embedding/grouping-trial.ts';
import type { TokenizedText } from '../../src/embedding/truncation.ts';

const tokenizer = {
  contentIds: (text: string) => [...text].map((character) => character.codePointAt(0)!),
  frame: (ids: readonly number[]) => [1, ...ids, 2],
};
const sum = ({ ids }: TokenizedText) => ids.reduce((total, id, at) => total + Math.fround(id / (at + 3)), 0);

test('a graph that looks at each text by itself may take texts together', async () => {
  const sizes: [number, number][] = [];
  const together = await tryGrouping(tokenizer, async (texts) => {
    sizes.push([texts.length, texts[0]!.ids.length]);
    assert.ok(texts.every(({ ids }) => ids.length === texts[0]!.ids.length));
    return texts.map((text) => Float32Array.of(sum(text)));
  });
  assert.equal(together, true);
  assert.ok(sizes.some(([rows]) => rows > 1) && sizes.some(([rows]) => rows === 1));
  assert.ok(sizes.every(([rows, length]) => rows * length <= 128));
});

test('a graph whose steps look at the whole batch may not, be the difference one bit in one row', async () => {
  const quantized = tryGrouping(tokenizer, async (texts) => {
    const largest = Math.max(...texts.flatMap(({ ids }) => ids));
    return texts.map((text) => Float32Array.of(Math.round((sum(text) / largest) * 127)));
  });
  assert.equal(await quantized, false);
  const oneBit = tryGrouping(tokenizer, async (texts) =>
    texts.map((text, row) => Float32Array.of(row === texts.length - 1 && row > 20 ? 1 + 2 ** -23 : 1, sum(text))),
  );
  assert.equal(await oneBit, false);
  const zeros = tryGrouping(tokenizer, async (texts) => texts.map((_, row) => Float32Array.of(row === 0 ? 0 : -0)));
  assert.equal(await zeros, false);
});

test('a graph that fails on several texts runs them alone', async () => {
  const found = await tryGrouping(tokenizer, async (texts) => {
    if (texts.length > 1) throw new Error('a batch of one only');
    return [Float32Array.of(1)];
  });
  assert.equal(found, false);
});

test('words that are all the same token to a tokenizer prove nothing', async () => {
  const found = await tryGrouping({ ...tokenizer, contentIds: () => [7, 7, 7, 8] }, async (texts) =>
    texts.map(() => Float32Array.of(1)),
  );
  assert.equal(found, false);
});

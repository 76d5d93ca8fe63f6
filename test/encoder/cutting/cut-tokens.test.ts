import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { packageRoot } from '../../../src/base/package-root.ts';
import { cutTokens } from '../../../src/encoder/cutting/cut-tokens.ts';
import { TextTokenizer } from '../../../src/encoder/tokenizer/tokenizer.ts';

type TokenCounter = Parameters<typeof cutTokens>[2];

const SEED = 20_261_122;
const tokenizer = await TextTokenizer.load(`${packageRoot}/models/token-average-256/tokenizer.json`);
const count = (text: string): number => tokenizer.contentIds(text, Number.MAX_SAFE_INTEGER).length;

const words = fc.constantFrom(
  'a',
  'bridge',
  'Brooklyn',
  'naïve',
  'antidisestablishmentarianism',
  '東京',
  '1,234.5',
  '[SEP]',
  '💧',
);
const spaces = fc.constantFrom(' ', '  ', '\n', '\t', '\u00a0');
const text = fc.array(fc.tuple(words, spaces), { maxLength: 60 }).map((parts) => parts.flat().join(''));

test('a cut text is the longest beginning of whole words with so few tokens', () => {
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 40 }), (whole, most) => {
      const { text: cut, isCut } = cutTokens(whole, most, tokenizer);
      assert.ok(whole.startsWith(cut));
      if (!isCut) {
        assert.equal(cut, whole);
        assert.ok(count(whole) <= most);
        return;
      }
      assert.ok(count(cut) <= most);
      const rest = /^\s*\S+/.exec(whole.slice(cut.length));
      assert.ok(cut === '' || /\S$/.test(cut));
      assert.ok(rest !== null && /^(\s|$)/.test(cut === '' ? ' ' : rest[0]), 'ends within a word');
      assert.ok(count(cut + rest[0]) > most, 'one more word would fit');
    }),
    { numRuns: 400, seed: SEED },
  );
});

test('a long run without white space is cut within, between characters', () => {
  const run = '💧'.repeat(400);
  const perCharacter: TokenCounter = { contentIds: (part) => Array.from(part, () => 0) };
  assert.deepEqual(cutTokens(`a ${run}`, 5, perCharacter), { text: `a ${'💧'.repeat(3)}`, isCut: true });
  const japanese = '東京は日本の首都です。'.repeat(40);
  const { text: cut, isCut } = cutTokens(japanese, 20, tokenizer);
  assert.deepEqual([isCut, count(cut)], [true, 20]);
});

test('a first word with more tokens leaves nothing, and a text that fits stays as it is', () => {
  assert.deepEqual(cutTokens('antidisestablishmentarianism', 1, tokenizer), { text: '', isCut: true });
  assert.deepEqual(cutTokens('', 1, tokenizer), { text: '', isCut: false });
  assert.deepEqual(cutTokens(' two  words \n', 2, tokenizer), { text: ' two  words \n', isCut: false });
});

test('only the beginning of a long text is tokenised', () => {
  let longest = 0;
  const counter: TokenCounter = {
    contentIds(part) {
      longest = Math.max(longest, part.length);
      return Array.from(part.matchAll(/\S+/g), () => 0);
    },
  };
  const { text: cut } = cutTokens('word '.repeat(1_000_000), 10, counter);
  assert.deepEqual([cut, longest < 1_000], [Array(10).fill('word').join(' '), true]);
});

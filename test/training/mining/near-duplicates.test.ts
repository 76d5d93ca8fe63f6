import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { comparableText } from '../../../src/base/comparable-text.ts';
import { NearDuplicates, shinglesOf } from '../../../training/mining/near-duplicates.ts';

function similarity(text: string, ...others: readonly string[]): number {
  const seen = new NearDuplicates();
  for (const other of others) seen.add(shinglesOf(other));
  return seen.similarity(shinglesOf(text));
}

test('shingles are runs of three words, without punctuation and case; a shorter text is one', () => {
  assert.deepEqual(
    [...shinglesOf(comparableText('The bridge, "opened" in 1883.'))],
    ['the bridge opened', 'bridge opened in', 'opened in 1883'],
  );
  assert.deepEqual([...shinglesOf(comparableText('Two words'))], ['two words']);
  assert.deepEqual([...shinglesOf(' … ')], []);
});

test('a text that contains another has the similarity 1, texts without a common run 0', () => {
  const long = 'the long bridge over the river opened to traffic in the year after the war';
  assert.equal(similarity('over the river opened', long), 1);
  assert.equal(similarity(long, 'over the river opened'), 1);
  assert.equal(similarity('war the after year the in', long), 0);
  assert.equal(similarity('', long), 0);
});

test('in Chinese, Japanese and Thai a character is a word', () => {
  assert.deepEqual([...shinglesOf('他住北京')], ['他 住 北', '住 北 京']);
  const text = '布魯克林大橋於一八八三年五月二十四日正式通車';
  assert.equal(similarity(text.replace('正', '已'), text), 17 / 20);
  assert.equal(similarity(`前文。${text}。後文`, text), 1);
});

test('one changed word of ten changes three shingles of eight', () => {
  const words = 'a b c d e f g h i j'.split(' ');
  const changed = words.map((word, i) => (i === 5 ? 'x' : word)).join(' ');
  assert.equal(similarity(changed, words.join(' ')), 5 / 8);
});

test('the similarity equals that of a direct count over every pair', () => {
  const text = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 12 }).map((words) => words.join(' '));
  fc.assert(
    fc.property(text, fc.array(text, { maxLength: 4 }), (one, others) => {
      const own = shinglesOf(one);
      const direct = others.map((other) => {
        const its = shinglesOf(other);
        const shared = [...own].filter((shingle) => its.has(shingle)).length;
        return shared === 0 ? 0 : shared / Math.min(own.size, its.size);
      });
      assert.equal(similarity(one, ...others), Math.max(0, ...direct));
    }),
  );
});

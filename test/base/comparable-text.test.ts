import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { comparableText } from '../../src/base/comparable-text.ts';
import { passageTexts } from '../../training/mining/near-duplicates.ts';

const EQUAL: readonly (readonly [a: string, b: string, why: string])[] = [
  ['The  Bridge\tof\u00a0Sighs\n', 'the bridge of sighs', 'white space and letter case'],
  ['Ro\u0308ntgen', 'R\u00f6ntgen', 'composed and decomposed letters'],
  ['\ufb01ve \u2460', 'five 1', 'compatibility forms'],
  ['\u201cThe \u2018Bridge\u2019\u201d', `"The 'Bridge'"`, 'kinds of quotation marks'],
  ["the city's bridge", 'the city\u2019s bridge', 'apostrophes'],
  ['zero\u200bwidth', 'zero width', 'invisible characters separate words'],
];

for (const [a, b, why] of EQUAL) {
  test(`${why} do not matter: ${JSON.stringify(a)}`, () => assert.equal(comparableText(a), comparableText(b)));
}

test('other words, their order and punctuation matter', () => {
  assert.notEqual(comparableText('the bridge'), comparableText('a bridge'));
  assert.notEqual(comparableText('man bites dog'), comparableText('dog bites man'));
  assert.notEqual(comparableText('in 1883.'), comparableText('in 1884.'));
});

test('the comparable text of a comparable text is itself', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      assert.equal(comparableText(comparableText(text)), comparableText(text));
    }),
    // Characters of which NFKC makes quotation marks: the Greek varia and oxia, three primes, and a primed letter.
    { examples: [['\u1FEF'], ['\u1FFD'], ['\u2034'], ['a\u1FEF\u0301'], ['\u0149'], ['\u00B4a']] },
  );
});

test('two passages with one text under two titles have one body; passages that are only a title have their own', () => {
  const text = 'It spans the river.';
  const bodyOf = (passage: { text: string; contents: string }): string => passageTexts(passage).body;
  assert.equal(bodyOf({ text, contents: `"A"\n${text}` }), bodyOf({ text: ' it spans  the river.', contents: text }));
  assert.notEqual(bodyOf({ text: '', contents: '"A"\n' }), bodyOf({ text: '', contents: '"B"\n' }));
});

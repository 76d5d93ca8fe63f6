import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerRule } from '../../../training/mining/answer-rule.ts';

const DECIDES: readonly (readonly [answer: string, decides: boolean])[] = [
  ['John A. Roebling', true],
  ['24 May 1883', true],
  ['東京', true],
  ['no one', true],
  ['Yes', false],
  ['no.', false],
  ['FALSE', false],
  ['1883', false],
  ['1,200', false],
  ['50 %', false],
  ['B', false],
  ['-', false],
  ['', false],
];

for (const [answer, decides] of DECIDES) {
  test(`${JSON.stringify(answer)} in a passage ${decides ? 'says' : 'does not say'} that it has the answer`, () => {
    const { undecidable, matches } = answerRule([answer]);
    assert.deepEqual([undecidable, matches(`It is ${answer}, they say.`)], decides ? [0, true] : [1, false]);
  });
}

const TYPOGRAPHY: readonly (readonly [answer: string, passage: string])[] = [
  ["Schindler's List", 'He directed Schindler’s List in 1993.'],
  ['Schindler’s List', "He directed Schindler's List in 1993."],
  ['Spider-Man', 'The film Spider–Man opened in 2002.'],
  ['Spider‑Man', 'The film Spider-Man opened in 2002.'],
  ['“Heroes” by Bowie', 'The song "Heroes" by Bowie.'],
  ['ＮＡＴＯ', 'A member of NATO since 1949.'],
  ['北京', '他住在北京市'],
  ['東京', '首都は東京です。'],
  ['さくら', 'きれいなさくらが咲く'],
  ['กรุงเทพ', 'เขาอยู่ที่กรุงเทพมหานคร'],
];

for (const [answer, passage] of TYPOGRAPHY) {
  test(`${answer} is in “${passage}”`, () => {
    assert.ok(answerRule([answer]).matches(passage));
  });
}

test('folding does not make parts of words answers', () => {
  const { matches } = answerRule(["d'Art", '北京', 'Spider-Man']);
  assert.deepEqual(["d'Artagnan", '北方的京城', 'Spider-Mania', 'Spider Man'].map(matches), [
    false,
    false,
    false,
    false,
  ]);
});

test('answers that say nothing are not looked for, and counted', () => {
  const rule = answerRule(['yes', '1883', 'Roebling']);
  assert.equal(rule.undecidable, 2);
  assert.deepEqual(['yes, in 1883', 'by Roebling in 1883'].map(rule.matches), [false, true]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerRule } from '../../mining/answer-rule.ts';

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

test('answers that say nothing are not looked for, and counted', () => {
  const rule = answerRule(['yes', '1883', 'Roebling']);
  assert.equal(rule.undecidable, 2);
  assert.deepEqual(['yes, in 1883', 'by Roebling in 1883'].map(rule.matches), [false, true]);
});

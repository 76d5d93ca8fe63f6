import assert from 'node:assert/strict';
import { test } from 'node:test';

import { answerHitAt, answerMatcher } from '../../evaluation/answer-match.ts';

const cases: readonly (readonly [passage: string, answer: string, matches: boolean, why: string])[] = [
  ['It began in October 1973.', 'october 1973', true, 'letter case and punctuation around do not matter'],
  ['a party of four', 'art', false, 'parts of words do not count'],
  ['the U.S. dollar', 'U.S.', true, 'punctuation is a token'],
  ['the US dollar', 'U.S.', false, 'punctuation inside an answer must be there'],
  ['Wilhelm Conrad R\u00f6ntgen', 'wilhelm conrad ro\u0308ntgen', true, 'composed and decomposed letters are the same'],
  ['Wilhelm Conrad Rontgen', 'R\u00f6ntgen', false, 'marks are not removed'],
  ['New\n York', 'new york', true, 'any white space separates'],
  ['New big York', 'New York', false, 'the tokens must come in one piece'],
  ['\u6771\u4eac\u306f\u9996\u90fd', '\u6771\u4eac', false, 'scripts without spaces make one token of a run'],
  ['anything', '', false, 'an answer without tokens matches nothing'],
  ['anything', ' \u00a0', false, 'nor does white space'],
  ['', 'x', false, 'nothing is in an empty passage'],
];

for (const [passage, answer, matches, why] of cases) {
  test(`${why}: ${JSON.stringify(answer)} in ${JSON.stringify(passage)}`, () => {
    assert.equal(answerMatcher([answer])(passage), matches);
  });
}

test('any answer in any of the first k passages is a hit', () => {
  const passages = ['nothing', 'the answer is 42', 'or 43'];
  assert.deepEqual(
    [1, 2, 3].map((k) => answerHitAt(passages, ['43', '42'], k)),
    [0, 1, 1],
  );
  assert.equal(answerHitAt(passages, [], 3), 0);
});

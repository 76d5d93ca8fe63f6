import assert from 'node:assert/strict';
import { test } from 'node:test';

import { answerMatcher, normalisedMatcher } from '../../src/search/answer-match.ts';

const cases: readonly (readonly [passage: string, answer: string, matches: boolean, why: string])[] = [
  ['It began in October 1973.', 'october 1973', true, 'letter case and punctuation around do not matter'],
  ['a party of four', 'art', false, 'parts of words do not count'],
  ['the U.S. dollar', 'U.S.', true, 'punctuation is a token'],
  ['the US dollar', 'U.S.', false, 'the passage must have the punctuation of the answer'],
  ['Wilhelm Conrad R\u00f6ntgen', 'wilhelm conrad ro\u0308ntgen', true, 'composed and decomposed letters are the same'],
  ['Wilhelm Conrad Rontgen', 'R\u00f6ntgen', false, 'marks are not removed'],
  ['New\n York', 'new york', true, 'any white space separates'],
  ['New big York', 'New York', false, 'the tokens must be adjacent'],
  ['\u6771\u4eac\u306f\u9996\u90fd', '\u6771\u4eac', false, 'a run of letters without spaces is one token'],
  ['anything', '', false, 'an answer without tokens matches nothing'],
  ['anything', ' \u00a0', false, 'an answer of white space matches nothing'],
  ['', 'x', false, 'an empty passage matches nothing'],
];

for (const [passage, answer, matches, why] of cases) {
  test(`${why}: ${JSON.stringify(answer)} in ${JSON.stringify(passage)}`, () => {
    assert.equal(answerMatcher([answer])(passage), matches);
  });
}

test('a passage matches if it contains any of the answers', () => {
  const passages = ['nothing', 'the answer is 42', 'or 43'];
  assert.deepEqual(passages.map(answerMatcher(['43', '42'])), [false, true, true]);
  assert.deepEqual(passages.map(answerMatcher([])), [false, false, false]);
});

test('normalised, articles, ASCII punctuation and white space do not count, and parts of words do', () => {
  const found = (answer: string, passage: string): boolean => normalisedMatcher([answer])(passage);
  assert.ok(found('The U.S.', 'in the US dollar'));
  assert.ok(found('Great  Gatsby', 'great the\tGatsby'));
  assert.ok(found('art', 'a party'));
  assert.ok(!found('théâtre', 'theatre'));
  // An article inside of a word stays, in any script.
  assert.ok(!found('thé', 'é'));
  for (const nothing of ['', ' ', 'the', '?!']) assert.ok(!found(nothing, 'the anything?!'), nothing);
});

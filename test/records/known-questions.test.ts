import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KnownQuestions } from '../../records/known-questions.ts';

const known = new KnownQuestions([
  { id: '1', question: 'One?', dataset: 'nq' },
  { id: '2', question: 'Two?' },
  { id: '3', question: 'Three?', dataset: 'nq' },
  { id: '3', question: 'Three of hotpot?', dataset: 'hotpotqa' },
]);

function found(id: string | undefined, dataset: string | undefined, text: string | undefined): string | undefined {
  return known.find({ id, dataset, text })?.question;
}

test('an id counts in its data set, or where one side names none', () => {
  assert.equal(found('1', 'nq', undefined), 'One?');
  assert.equal(found('1', undefined, undefined), 'One?');
  assert.equal(found('2', 'nq', undefined), 'Two?');
  assert.equal(found('1', 'hotpotqa', undefined), undefined);
  assert.equal(found('1', 'hotpotqa', ' Two? '), 'Two?', 'the text decides');
});

test('an id of several questions finds none of them without the data set', () => {
  assert.equal(found('3', undefined, undefined), undefined);
  assert.equal(found('3', undefined, 'Three?'), 'Three?');
  assert.equal(found('3', 'hotpotqa', undefined), 'Three of hotpot?');
});

test('another text decides unless both sides name the data set', () => {
  assert.equal(found('1', undefined, 'Two?'), 'Two?');
  assert.equal(found('1', undefined, 'Unknown?'), undefined);
  assert.equal(found('1', undefined, ' one '), 'One?', 'case, punctuation and spaces are no difference');
  assert.equal(found('1', 'nq', 'Another form of one?'), 'One?');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KnownQuestions } from '../../../training/records/known-questions.ts';

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

test('texts are equal but for case, quotation marks, spaces and forms of characters', () => {
  const quoted = new KnownQuestions([{ id: '1', question: 'Who wrote “The Trial”?' }]);
  const textFinds = (text: string): boolean => quoted.find({ id: undefined, dataset: undefined, text }) !== undefined;
  for (const text of ['Who wrote "The Trial"?', ' who  wrote the trial? ', 'WHO WROTE THE TRIAL\uff1f']) {
    assert.equal(textFinds(text), true, text);
  }
  for (const text of ['Who wrote The Trial', 'Who wrote a trial?', '', ' ', '“”'])
    assert.equal(textFinds(text), false, text);
});

test('what was searched for may be the question, where the record has no question', () => {
  const find = (text: string | undefined, query: string): string | undefined =>
    known.find({ id: undefined, dataset: undefined, text, query })?.question;
  assert.equal(find(undefined, ' two? '), 'Two?');
  assert.equal(find('Unknown?', 'Two?'), undefined);
  assert.equal(known.find({ id: '1', dataset: 'nq', text: undefined, query: 'Two?' })?.question, 'One?');
});

test('a question without a text, or of nothing but quotation marks, is found by its id alone', () => {
  const blank = new KnownQuestions([{ id: '1', question: '“”' }]);
  assert.equal(blank.find({ id: undefined, dataset: undefined, text: '""' }), undefined);
  assert.equal(blank.find({ id: '1', dataset: undefined, text: undefined })?.question, '“”');
});

test('another text decides unless both sides name the data set', () => {
  assert.equal(found('1', undefined, 'Two?'), 'Two?');
  assert.equal(found('1', undefined, 'Unknown?'), undefined);
  assert.equal(found('1', undefined, ' one '), 'One?', 'case, punctuation and spaces are no difference');
  assert.equal(found('1', 'nq', 'Another form of one?'), 'One?');
});

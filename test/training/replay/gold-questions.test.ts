import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goldQuestions } from '../../../training/replay/gold-questions.ts';
import { recordLine } from '../../helpers/record-lines.ts';
import { parseRecord } from '../records/parse-record.ts';

const gold = goldQuestions([
  { id: '1', question: 'Of nq?', dataset: 'nq', goldIds: ['a'] },
  { id: '1', question: 'Of hotpotqa?', dataset: 'hotpotqa', goldIds: ['b'] },
  { id: '2', question: 'Of either?', goldIds: ['c'] },
]);

/** The gold passages of a recorded query. */
function goldOf(fields: object, query = 'a query'): string | undefined {
  const parsed = parseRecord(recordLine(query, fields));
  assert.ok(parsed.ok);
  const found = gold.of(parsed.query);
  return found === undefined ? undefined : [...found.ids].join();
}

test('golds are those of the question with the id in the data set of the record', () => {
  assert.equal(goldOf({ questionId: '1', dataset: 'nq' }), 'a');
  assert.equal(goldOf({ questionId: '1', dataset: 'hotpotqa' }), 'b');
  assert.equal(goldOf({ questionId: '1', dataset: 'nq', question: 'Another wording?' }), 'a');
  assert.equal(goldOf({ questionId: '1', dataset: 'musique' }), undefined);
  assert.equal(goldOf({ questionId: '1' }), undefined, 'the id of two questions');
  assert.equal(goldOf({ questionId: '2', dataset: 'nq' }), 'c', 'one side names no data set');
});

test('where the id does not decide, the text does: the question, its part of a composed query, or the query', () => {
  assert.equal(goldOf({ questionId: '2', dataset: 'nq', question: 'Another question?' }), undefined);
  assert.equal(goldOf({ questionId: '2', dataset: 'nq', question: 'Of hotpotqa?' }), 'b');
  assert.equal(goldOf({}, 'of  NQ? [SEP] sub-query'), 'a');
  assert.equal(goldOf({}, 'Of either?'), 'c');
  assert.equal(goldOf({ question: 'Unknown?' }, 'Of either?'), undefined, 'the query of another question');
});

test('yes and no are no golden answers, because passages of any subject have the word', () => {
  const golds = goldQuestions([
    { id: 'only', question: 'Is it?', goldenAnswers: ['yes'] },
    { id: 'both', question: 'Is that?', goldenAnswers: ['no', 'Vienna'] },
  ]);
  assert.equal(golds.of({ questionId: 'only', query: 'q' })!.hasAnswer, undefined);
  const { hasAnswer } = golds.of({ questionId: 'both', query: 'q' })!;
  assert.deepEqual(['no river', 'Vienna'].map(hasAnswer!), [false, true]);
});

test('a question is found by the same object, so that its golds are made once', () => {
  const parsed = parseRecord(recordLine('Of either?'));
  assert.ok(parsed.ok);
  assert.equal(gold.of(parsed.query), gold.of(parsed.query));
});

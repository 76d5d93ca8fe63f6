import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COMPOSED_SEPARATOR, composedParts, withoutQuestion } from '../../../src/server/recording/composed-query.ts';

test('a composed text is cut at its first separator', () => {
  assert.deepEqual(composedParts('Who? [SEP] the engineer'), { question: 'Who?', query: 'the engineer' });
  assert.deepEqual(composedParts('Who? [SEP] Danube [SEP] its length'), {
    question: 'Who?',
    query: 'Danube [SEP] its length',
  });
  assert.deepEqual(composedParts('Who? [SEP] '), { question: 'Who?', query: '' });
});

test('a composed text is cut after the known question, even if that contains a separator', () => {
  const text = 'A [SEP] B? [SEP] sub';
  assert.deepEqual(composedParts(text, 'A [SEP] B?'), { question: 'A [SEP] B?', query: 'sub' });
  assert.equal(withoutQuestion(text, 'A [SEP] B?'), 'sub');
});

test('a known question that does not begin the text changes nothing', () => {
  assert.deepEqual(composedParts('Where? [SEP] sub', 'Who?'), { question: 'Where?', query: 'sub' });
  assert.equal(withoutQuestion('Where? [SEP] sub', 'Who?'), 'Where? [SEP] sub');
  // "Who" begins the text, and the separator does not follow.
  assert.equal(withoutQuestion('Who? [SEP] sub', 'Who'), 'Who? [SEP] sub');
});

test('a text without a separator, or with nothing before it, is not composed', () => {
  for (const text of ['', 'a query', 'a[SEP]b', 'a [sep] b', 'a [SEP]', '[SEP] a', `${COMPOSED_SEPARATOR}a`]) {
    assert.equal(composedParts(text), undefined, text);
    assert.equal(withoutQuestion(text, 'a'), text);
  }
});

test('question, separator and query make the text again', () => {
  const text = 'Who? [SEP] a [SEP] b';
  const { question, query } = composedParts(text)!;
  assert.equal(`${question}${COMPOSED_SEPARATOR}${query}`, text);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { redactor } from '../../../training/records/redact-record.ts';

const LINE = JSON.stringify({
  query: 'sub',
  question: 'Who?',
  answer: { tokens: 5, text: 'query: Who? [SEP] sub', rescored: 3 },
});

test('a redacted text does not stay in the text that it is a part of', () => {
  for (const name of ['query', 'question', 'history']) {
    const dropped = JSON.parse(redactor({ drop: [name], hash: [] })(LINE)) as { answer: object };
    assert.deepEqual(dropped.answer, { tokens: 5, rescored: 3 }, name);
  }
  const hashed = redactor({ drop: [], hash: ['query', 'question'], key: Buffer.from('secret') })(LINE);
  assert.doesNotMatch(hashed, /Who|sub/);
  const kept = JSON.parse(redactor({ drop: ['policy'], hash: [] })(LINE)) as object;
  assert.deepEqual(kept, JSON.parse(LINE));
});

test('a history that is not named is redacted as the query is, else as the question', () => {
  const line = JSON.stringify({ query: 'sub', question: 'Who?', history: ['first', 'sub'] });
  const key = Buffer.from('secret');
  for (const name of ['query', 'question']) {
    const dropped = redactor({ drop: [name], hash: [] })(line);
    assert.doesNotMatch(dropped, /history|first/, name);
    const hashed = JSON.parse(redactor({ drop: [], hash: [name], key })(line)) as { query: string; history: string[] };
    assert.match(hashed.history.join(' '), /^[0-9a-f]{32} [0-9a-f]{32}$/, name);
    if (name === 'query') assert.equal(hashed.history[1], hashed.query);
  }
  assert.match(redactor({ drop: ['policy'], hash: [] })(line), /"history":\["first","sub"\]/);
});

test('a question that is redacted without the query does not stay in front of the sub-query', () => {
  const key = Buffer.from('secret');
  for (const record of [
    { query: 'Who? [SEP] sub' },
    { query: 'Who? [SEP] sub', question: 'Who?' },
    { query: 'Who? [SEP] or what? [SEP] sub', question: 'Who? [SEP] or what?' },
  ]) {
    const line = JSON.stringify(record);
    const dropped = JSON.parse(redactor({ drop: ['question'], hash: [] })(line)) as { query: string };
    assert.equal(dropped.query, 'sub');
    const hashed = redactor({ drop: [], hash: ['question'], key })(line);
    assert.match(hashed, /"query":"[0-9a-f]{32} \[SEP\] sub"/);
    assert.doesNotMatch(hashed, /Who/);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { redactor } from '../../records/redact-record.ts';

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

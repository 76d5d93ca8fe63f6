import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  ORIGIN_FAULTS,
  ORIGIN_FIELDS,
  type OriginField,
  readOriginValue,
} from '../../../src/server/recording/query-origin.ts';

const FIELDS = Object.keys(ORIGIN_FIELDS) as OriginField[];

function valueIn(field: OriginField, value: unknown): unknown {
  const read = readOriginValue(field, value);
  return read.ok ? read.value : read.fault;
}

test('ids are texts or whole numbers, without the spaces around them', () => {
  assert.equal(valueIn('trajectory', ' 7f-é '), '7f-é');
  assert.equal(valueIn('questionId', 12), '12');
  assert.equal(valueIn('policy', 'x'.repeat(256)), 'x'.repeat(256));
});

test('an id that is too long, blank, no text or has control characters is a fault of its own', () => {
  assert.equal(valueIn('trajectory', 'x'.repeat(257)), 'too-long');
  for (const bad of ['', ' ', 'a\nb', 'a\0', 'a\u009f', '\ud800'])
    assert.equal(valueIn('trajectory', bad), 'characters');
  for (const bad of [1.5, 2 ** 53, true, {}, [], undefined]) assert.equal(valueIn('trajectory', bad), 'type');
});

test('turn and step are whole numbers from 0, also as text', () => {
  assert.deepEqual([valueIn('turn', 0), valueIn('step', ' 12 ')], [0, 12]);
  for (const bad of [-1, 1.5, '-1', '1e3', 'x', '', '99999999999999999', true, null]) {
    assert.equal(valueIn('turn', bad), 'type', String(bad));
  }
});

test('a question may have several lines, and more characters than an id', () => {
  assert.equal(valueIn('question', `Who?\n${'x'.repeat(1000)}`), `Who?\n${'x'.repeat(1000)}`);
  assert.equal(valueIn('question', 'x'.repeat(16_385)), 'too-long');
  assert.equal(valueIn('question', 7), 'type');
});

test('tags are an object of texts, numbers and booleans, or text', () => {
  assert.deepEqual(valueIn('tags', { arm: 'b', lr: 1e-5, warm: true }), { arm: 'b', lr: '0.00001', warm: 'true' });
  assert.deepEqual(valueIn('tags', ' arm = b , warm,'), { arm: 'b', warm: '' });
  const polluting = valueIn('tags', JSON.parse('{"__proto__":"x"}')) as object;
  assert.deepEqual(Object.entries(polluting), [['__proto__', 'x']]);
  for (const bad of [['a'], { a: null }, { a: {} }, 7]) assert.equal(valueIn('tags', bad), 'type');
  assert.equal(valueIn('tags', '=b'), 'characters');
  assert.equal(valueIn('tags', { a: 'x\ny' }), 'characters');
  assert.equal(valueIn('tags', { a: 'x'.repeat(257) }), 'too-long');
  const many = Array.from({ length: 33 }, (_, i) => `t${i}=1`).join();
  assert.equal(valueIn('tags', many), 'too-long');
});

test('any value is read or has a known fault', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...FIELDS),
      fc.anything({ withBigInt: true, withNullPrototype: true }),
      (field, value) => {
        const read = readOriginValue(field, value);
        if (!read.ok) assert.ok(ORIGIN_FAULTS.includes(read.fault));
      },
    ),
  );
});

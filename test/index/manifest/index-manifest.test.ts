import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generationOf } from '../../../src/index/manifest/index-manifest.ts';

test('equal facts have the same generation, different facts another', () => {
  const facts = [10, 'x', { a: 1 }];
  assert.match(generationOf(facts), /^[0-9a-f]{32}$/);
  assert.equal(generationOf(facts), generationOf([10, 'x', { a: 1 }]));
  for (const other of [
    [10, 'x', { a: 2 }],
    [10, 'x'],
    ['10', 'x', { a: 1 }],
    [10, 'x', { b: 1 }],
  ]) {
    assert.notEqual(generationOf(facts), generationOf(other));
  }
});

test('the generation of known facts stays the same across releases', () => {
  assert.equal(generationOf(['index', 'abc']), '9fdc696cec06364e7ad9abc2ff0cdd43');
});

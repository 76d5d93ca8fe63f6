import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closestTo } from '../../../src/base/options/closest.ts';

test('a misspelt word finds the closest candidate', () => {
  const commands = ['index', 'serve', 'search', 'eval'];
  assert.equal(closestTo('indx', commands), 'index');
  assert.equal(closestTo('serch', commands), 'search');
  assert.equal(closestTo('evla', commands), 'eval');
  assert.equal(closestTo('serve', commands), 'serve');
});

test('the first of equally close candidates wins', () => {
  assert.equal(closestTo('cat', ['bat', 'rat']), 'bat');
});

test('a word unlike all candidates finds none', () => {
  assert.equal(closestTo('photosynthesis', ['index', 'serve']), undefined);
  assert.equal(closestTo('abc', []), undefined);
  assert.equal(closestTo('xyz', ['abc']), undefined);
});

test('a longer word may differ in more letters', () => {
  assert.equal(closestTo('passage-tmplt', ['passage-template']), 'passage-template');
});

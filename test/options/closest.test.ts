import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closestTo } from '../../src/options/closest.ts';

test('the nearest candidate of a misspelt word is found', () => {
  const commands = ['index', 'serve', 'search', 'eval'];
  assert.equal(closestTo('indx', commands), 'index');
  assert.equal(closestTo('serch', commands), 'search');
  assert.equal(closestTo('evla', commands), 'eval');
  assert.equal(closestTo('serve', commands), 'serve');
});

test('of equally near candidates the first is taken', () => {
  assert.equal(closestTo('cat', ['bat', 'rat']), 'bat');
});

test('a word like none has no nearest', () => {
  assert.equal(closestTo('photosynthesis', ['index', 'serve']), undefined);
  assert.equal(closestTo('abc', []), undefined);
  assert.equal(closestTo('xyz', ['abc']), undefined);
});

test('longer words may differ more', () => {
  assert.equal(closestTo('passage-tmplt', ['passage-template']), 'passage-template');
});

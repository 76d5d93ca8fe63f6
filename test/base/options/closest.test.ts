import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closestTo, suggestOption } from '../../../src/base/options/closest.ts';

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

test('the names that other tools have for the number of passages lead to the option of the command', () => {
  for (const name of ['topk', 'top-k', 'top_k', 'top-n', 'limit', 'num_results']) {
    assert.equal(suggestOption(name, ['index', 'k', 'mode']), 'k', name);
  }
  assert.equal(suggestOption('k', ['topk', 'max-k']), 'topk');
  assert.equal(suggestOption('top_k', ['port', 'topk']), 'topk');
});

test('without such an option, and for other names, the closest name is suggested', () => {
  assert.equal(suggestOption('max_k', ['port', 'max-k']), 'max-k');
  assert.equal(suggestOption('prot', ['port', 'topk']), 'port');
  assert.equal(suggestOption('limit', ['seconds']), undefined);
});

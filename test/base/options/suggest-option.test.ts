import assert from 'node:assert/strict';
import { test } from 'node:test';
import { suggestOption } from '../../../src/base/options/suggest-option.ts';

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

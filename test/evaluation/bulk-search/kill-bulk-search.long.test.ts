import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { killSearches } from './kill-bulk-search.ts';

// The long form: npm run check -- kill --search
test('bulk searches that are killed at random moments and resumed have the same output as undisturbed ones', async (t) => {
  const result = await killSearches({ folder: await tempFolder(t), moments: 6, seed: 5, passages: 500 });
  if (result.withoutCalls !== undefined) t.diagnostic(`no kills at calls: ${result.withoutCalls}`);
  assert.ok(result.kills >= 2, `${result.kills} searches were killed`);
  assert.ok(result.compared >= 2);
  if (result.withoutCalls === undefined) assert.ok(result.resumed >= 1, 'no search resumed');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { killMining } from './kill-mining-runs.ts';

// The long form: npm run check -- kill --mine
test('runs of trawl mine that are killed at random moments and resumed have the files of undisturbed ones', async (t) => {
  const result = await killMining({ folder: await tempFolder(t), moments: 2, seed: 5, passages: 300 });
  if (result.withoutCalls !== undefined) t.diagnostic(`no kills at calls: ${result.withoutCalls}`);
  assert.ok(result.kills >= 1, `${result.kills} runs were killed`);
  assert.ok(result.compared >= 1);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { killIterations } from './kill-iterations.ts';

// The long form: npm run check -- kill --iterate
test('an iteration that is killed at random moments and resumed has the same files as an undisturbed one', async (t) => {
  const folder = await tempFolder(t);
  const result = await killIterations({ folder, moments: 3, seed: 4, passages: 100, onlyFirst: true });
  if (result.withoutCalls !== undefined) t.diagnostic(`no kills at calls: ${result.withoutCalls}`);
  assert.ok(result.kills >= 1, `${result.kills} commands were killed`);
  assert.ok(result.compared >= 1);
});

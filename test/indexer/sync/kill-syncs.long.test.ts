import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { killSyncs } from './kill-syncs.ts';

// The long form: npm run check -- kill --sync
test('a copy that is killed leaves the old or the new index, and is completed by the same command', async (t) => {
  const folder = await tempFolder(t);
  const result = await killSyncs({ folder, moments: 4, seed: 3 });
  if (result.withoutCalls !== undefined) t.diagnostic(`no kills at calls: ${result.withoutCalls}`);
  assert.ok(result.kills >= 2, `${result.kills} commands were killed`);
  assert.ok(result.compared >= 2);
});

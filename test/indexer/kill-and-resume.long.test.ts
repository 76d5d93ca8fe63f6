import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tempFolder } from '../helpers/temp-folder.ts';
import { killAndResume } from './kill-and-resume.ts';

// The long form: npm run check -- kill, and with -- --updates, --bm25, --columns or --search
for (const updates of [false, true]) {
  test(`${updates ? 'updates' : 'builds'} that are killed at random moments and resumed make the same index as undisturbed ones`, async (t) => {
    const result = await killAndResume({
      folder: await tempFolder(t),
      moments: updates ? 4 : 8,
      seed: 7,
      passages: 1_000,
      updates,
    });
    if (result.withoutCalls !== undefined) t.diagnostic(`no kills at calls: ${result.withoutCalls}`);
    assert.ok(result.kills >= 2, `${result.kills} builds were killed`);
    assert.ok(result.compared >= 1);
  });
}

test('columns whose making is killed, in a build or by optimize, are the same after the next run as undisturbed ones', async (t) => {
  const result = await killAndResume({
    folder: await tempFolder(t),
    moments: 8,
    seed: 9,
    passages: 1_000,
    columns: true,
  });
  if (result.withoutCalls !== undefined) t.diagnostic(`no kills at calls: ${result.withoutCalls}`);
  assert.ok(result.kills >= 2, `${result.kills} commands were killed`);
  assert.ok(result.compared >= 2);
});

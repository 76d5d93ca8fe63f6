import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { bfloat16Model } from './bfloat16-model.ts';
import { killAndResume } from './kill-and-resume.ts';

const withoutEngine = loadKernel().ok ? false : 'the native engine is not built';

test('builds in bfloat16 that are killed and resumed, at once or by jobs that are merged, make the bytes of an undisturbed one', {
  skip: withoutEngine,
}, async (t) => {
  const folder = await tempFolder(t);
  const encoder = [await bfloat16Model(folder), '--precision', 'bfloat16'];
  const result = await killAndResume({ folder, moments: 8, seed: 11, passages: 600, encoder });
  if (result.withoutCalls !== undefined) t.diagnostic(`no kills at calls: ${result.withoutCalls}`);
  assert.ok(result.kills >= 2, `${result.kills} builds were killed`);
  assert.ok(result.compared >= 2, `${result.compared} indexes were compared`);
});

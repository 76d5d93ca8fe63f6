import assert from 'node:assert/strict';
import { test } from 'node:test';
import { integerProductSettings } from '../../../src/encoder/inference/int8-runner.ts';
import type { Addon, LoadedAddon } from '../../../src/engine/native/load-addon.ts';

function engineWith(available: boolean): LoadedAddon {
  const isas = (): unknown => [{ name: 'avx512-vnni', available, reason: '' }];
  return { ok: true, addon: { isas } as unknown as Addon, origin: 'compiled here' };
}

test('onnxruntime multiplies in its slower, exact way where the processor lacks VNNI or is not known, and only there', () => {
  const exact = { x64quantprecision: '1' };
  assert.deepEqual(integerProductSettings(engineWith(false)), exact);
  assert.deepEqual(integerProductSettings({ ok: false, reason: 'no compiler' }), exact);
  assert.deepEqual(integerProductSettings(engineWith(true)), {});
});

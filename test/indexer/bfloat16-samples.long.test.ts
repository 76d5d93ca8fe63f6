import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { fileFolder, runTrawl, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { bfloat16Model } from './bfloat16-model.ts';

const withoutEngine = loadKernel().ok ? false : 'the native engine is not built';

const folder = await fileFolder();
const index = join(folder, 'ix');
before(async () => {
  if (withoutEngine !== false) return;
  const model = await bfloat16Model(folder);
  const args = ['index', SAMPLE_PASSAGES, '--model', model, '--precision', 'bfloat16', '--out', index, '--quiet'];
  const { code, stderr } = await runTrawl(args);
  assert.equal(code, 0, stderr);
});

const verify = (...more: string[]) => runTrawl(['verify', index, '--sample', '40', '--json', '--quiet', ...more]);

interface Report {
  readonly sample: { readonly passages: number; readonly equal: number; readonly largestDistance: number };
}

test('a sample of an index in bfloat16 is embedded in bfloat16 again, with the same bits', {
  skip: withoutEngine,
}, async () => {
  const { code, stdout, stderr } = await verify();
  assert.equal(code, 0, stderr);
  assert.deepEqual((JSON.parse(stdout) as Report).sample, { passages: 40, equal: 40, largestDistance: 0 });
});

test('with --precision float32 the same sample is near, and --sample-distance finds that other bits made it', {
  skip: withoutEngine,
}, async () => {
  const near = await verify('--precision', 'float32');
  assert.equal(near.code, 0, near.stderr);
  const { sample } = JSON.parse(near.stdout) as Report;
  assert.ok(sample.equal < 40 && sample.largestDistance > 0 && sample.largestDistance < 0.05, near.stdout);
  const exact = ['--sample-distance', '0.000001'];
  assert.equal((await verify('--precision', 'float32', ...exact)).code, 3);
  assert.equal((await verify(...exact)).code, 0);
});

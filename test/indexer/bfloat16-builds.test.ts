import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { importModel } from '../../model-import/import-model.ts';
import { loadKernel } from '../../src/native/kernel.ts';
import { runTrawl, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { tinyCheckpoint } from '../helpers/tiny-checkpoint.ts';
import { killAndResume } from './kill-and-resume.ts';

const withoutEngine = loadKernel().ok ? false : 'the native engine is not built';

/** A tiny BERT in float32 and bfloat16. */
async function tinyModel(folder: string): Promise<string> {
  const source = join(folder, 'checkpoint');
  for (const [name, bytes] of Object.entries(tinyCheckpoint())) {
    await mkdir(dirname(join(source, name)), { recursive: true });
    await writeFile(join(source, name), bytes);
  }
  const precisions = ['float32', 'bfloat16'] as const;
  return (await importModel(source, { out: join(folder, 'model', 'tiny'), precisions })).folder;
}

async function built(t: TestContext): Promise<string> {
  const folder = await tempFolder(t);
  const index = join(folder, 'ix');
  const model = await tinyModel(folder);
  const args = ['index', SAMPLE_PASSAGES, '--model', model, '--precision', 'bfloat16', '--out', index, '--quiet'];
  const { code, stderr } = await runTrawl(args);
  assert.equal(code, 0, stderr);
  return index;
}

const verify = (index: string, ...more: string[]) =>
  runTrawl(['verify', index, '--sample', '40', '--json', '--quiet', ...more]);

interface Report {
  readonly sample: { readonly passages: number; readonly equal: number; readonly largestDistance: number };
}

test('builds in bfloat16 that are killed and resumed, at once or by jobs that are merged, make the bytes of an undisturbed one', {
  skip: withoutEngine,
}, async (t) => {
  const folder = await tempFolder(t);
  const encoder = [await tinyModel(folder), '--precision', 'bfloat16'];
  const result = await killAndResume({ folder, moments: 8, seed: 11, passages: 600, encoder });
  if (result.withoutCalls !== undefined) t.diagnostic(`no kills at calls: ${result.withoutCalls}`);
  assert.ok(result.kills >= 2, `${result.kills} builds were killed`);
  assert.ok(result.compared >= 2, `${result.compared} indexes were compared`);
});

test('a sample of an index in bfloat16 is embedded in bfloat16 again, with the same bits', {
  skip: withoutEngine,
}, async (t) => {
  const index = await built(t);
  const { code, stdout, stderr } = await verify(index);
  assert.equal(code, 0, stderr);
  assert.deepEqual((JSON.parse(stdout) as Report).sample, { passages: 40, equal: 40, largestDistance: 0 });
});

test('with --precision float32 the same sample is near, and --sample-distance finds that other bits made it', {
  skip: withoutEngine,
}, async (t) => {
  const index = await built(t);
  const near = await verify(index, '--precision', 'float32');
  assert.equal(near.code, 0, near.stderr);
  const { sample } = JSON.parse(near.stdout) as Report;
  assert.ok(sample.equal < 40 && sample.largestDistance > 0 && sample.largestDistance < 0.05, near.stdout);
  const exact = ['--sample-distance', '0.000001'];
  assert.equal((await verify(index, '--precision', 'float32', ...exact)).code, 3);
  assert.equal((await verify(index, ...exact)).code, 0);
});

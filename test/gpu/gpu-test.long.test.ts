import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { type Ended, endOf } from '../cli/run-trawl.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { tinyCheckpoint } from '../helpers/tiny-checkpoint.ts';
import { firstStep } from './first-step.ts';
import { missingGpu } from './gpu-machine.ts';
import type { GpuRun, StepResult } from './gpu-step.ts';

interface Report {
  readonly machine: { readonly rehearsal: boolean };
  readonly steps: readonly StepResult[];
}

const skip = process.platform === 'linux' && process.arch === 'x64' ? false : 'GPUs are used on Linux x64 only';

/** Runs `npm run check -- gpu --small …` without the set-up. */
async function gpuTest(t: TestContext, args: readonly string[]): Promise<Ended & { report: Report; text: string }> {
  const out = await tempFolder(t);
  const script = join(packageRoot, 'scripts', 'checks', 'gpu.mjs');
  const ended = await endOf(
    spawn(process.execPath, [script, '--no-setup', '--small', '--out', out, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  const report = JSON.parse(readFileSync(join(out, 'gpu-report.json'), 'utf8')) as Report;
  return { ...ended, report, text: readFileSync(join(out, 'gpu-report.txt'), 'utf8') };
}

const outcomes = ({ steps }: Report): string[] => steps.map(({ name, outcome }) => `${name}: ${outcome}`);

test('without a GPU the test runs up to the first step that needs one, and says what is missing and what to do', {
  skip: skip || (missingGpu() === undefined ? 'a GPU is at hand: run npm run check -- gpu' : false),
}, async (t) => {
  const { code, stderr, report, text } = await gpuTest(t, []);
  assert.equal(code, 3, stderr);
  assert.deepEqual(outcomes(report), [
    'models: passed',
    'vectors of the CPU: passed',
    'the first run on the GPU: missing',
  ]);
  const advice = /No NVIDIA GPU: .*Run this on a machine with a GPU|CUDA provider is missing.*install\.js/s;
  for (const told of [stderr, text, report.steps.at(-1)!.text]) assert.match(told, advice);
  assert.match(stderr, /gpu-report\.txt/);
});

test('a rehearsal on the CPU does every step, and its report says that no GPU was used', { skip }, async (t) => {
  const { code, stderr, report, text } = await gpuTest(t, ['--rehearse']);
  assert.equal(code, 0, stderr);
  assert.deepEqual(outcomes(report), [
    'models: passed',
    'vectors of the CPU: passed',
    'the first run on the GPU: passed',
    'vectors beside those of the CPU: passed',
    'batches: passed',
    'several encoders: passed',
    'not enough memory for a batch: skipped',
    'a killed build is resumed: passed',
    'throughput: missing',
  ]);
  assert.equal(report.machine.rehearsal, true);
  assert.match(text, /^A rehearsal on the CPU: these are no figures of a GPU\./);
  assert.match(text, /qwen3-shape \(decoder\), together and alone: least cosine (1\.0|0\.9999)/);
});

test('what a machine lacks is named in the order in which it is to be fixed', { skip }, () => {
  assert.match(missingGpu(() => false)!, /No NVIDIA GPU: \/dev\/nvidiactl is missing/);
  assert.match(
    missingGpu((path) => path.startsWith('/dev'))!,
    /CUDA provider is missing.*docs\/gpu\.md.*--provider FOLDER/s,
  );
  assert.equal(
    missingGpu(() => true),
    undefined,
  );
});

test('the first run fails for any error but that of a GPU that cannot be used; a rehearsal misses nothing', {
  skip,
}, async (t) => {
  const folder = await tempFolder(t);
  for (const [path, content] of Object.entries(tinyCheckpoint())) {
    mkdirSync(dirname(join(folder, 'checkpoint', path)), { recursive: true });
    writeFileSync(join(folder, 'checkpoint', path), content);
  }
  const tiny = join(folder, 'tiny');
  await importModel(join(folder, 'checkpoint'), { out: tiny, name: 'tiny', precisions: ['float32'] });
  const runOf = (path: string, device: number | null) => {
    const model = { name: 'one', folder: path } as GpuRun['models'][number];
    const rest = { devices: [], small: true, folder: '', python: undefined, say: () => undefined };
    return firstStep(device === null, ['GPU A'], () => undefined).run({ models: [model], device, ...rest });
  };
  const absent = join(folder, 'absent');
  for (const device of [null, 0]) assert.equal((await runOf(absent, device)).outcome, 'failed', `${device}`);
  assert.equal((await runOf(tiny, null)).outcome, 'passed');
  const first = await runOf(tiny, 99);
  // There is no GPU with this number: DEVICE_UNAVAILABLE.
  assert.equal(first.outcome, 'missing', first.text);
  assert.match(first.text, /cuda:99 cannot be used/);
});

for (const [signal, expected] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const) {
  test(`${signal} ends the test, and its temporary files are removed`, { skip }, async (t) => {
    const folder = await tempFolder(t);
    const script = join(packageRoot, 'scripts', 'checks', 'gpu.mjs');
    const args = ['--no-setup', '--small', '--rehearse', '--out', join(folder, 'report')];
    // In a group of its own, to which a terminal's Ctrl-C goes.
    const child = spawn(process.execPath, [script, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      env: { ...process.env, TMPDIR: folder },
    });
    const ended = endOf(child);
    let stderr = '';
    child.stderr.on('data', (text: string) => (stderr += text));
    while (!stderr.includes('models') && child.exitCode === null)
      await Promise.race([once(child.stderr, 'data'), ended]);
    const left = (): string[] => readdirSync(folder).filter((name) => name.startsWith('trawl-gpu-'));
    assert.equal(left().length, 1, stderr);
    process.kill(signal === 'SIGINT' ? -child.pid! : child.pid!, signal);
    assert.equal((await ended).code, expected, stderr);
    assert.deepEqual(left(), []);
  });
}

import assert from 'node:assert/strict';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { tempFolder } from '../helpers/temp-folder.ts';
import { freeMemory, gpuNames } from './gpu-machine.ts';
import type { GpuRun } from './gpu-step.ts';
import { memoryStep } from './memory-step.ts';

const skip = process.platform === 'win32' ? 'the fake nvidia-smi is a shell script' : false;

/** Sets a variable of this process until the test ends. */
function setVariable(t: TestContext, name: string, value: string): void {
  const before = process.env[name];
  t.after(() => {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  });
  process.env[name] = value;
}

/**
 * Puts a program on the PATH that answers as `nvidia-smi` on a machine with three GPUs does, which can also be named by their UUIDs.
 * Returns a function that reads what it was asked.
 */
async function fakeNvidiaSmi(t: TestContext, free: readonly [string, string, string]): Promise<() => string[]> {
  const folder = await tempFolder(t);
  const asked = join(folder, 'asked');
  const gpu = (at: number): string =>
    `case "$*" in *query-gpu=name*) echo 'GPU ${'ABC'[at]}';; *memory.free*) echo '${free[at]}';; esac`;
  writeFileSync(
    join(folder, 'nvidia-smi'),
    `#!/bin/sh
echo "$*" >> '${asked}'
if [ "$1" != -i ]; then ${gpu(0)}; ${gpu(1)}; ${gpu(2)}; exit 0; fi
case "$2" in
  0|GPU-aaaa) ${gpu(0)};;
  1|GPU-bbbb) ${gpu(1)};;
  2|GPU-cccc) ${gpu(2)};;
  *) echo "No devices were found"; exit 6;;
esac
`,
  );
  chmodSync(join(folder, 'nvidia-smi'), 0o755);
  setVariable(t, 'PATH', `${folder}:${process.env['PATH']}`);
  // Restores the machine's own, which may hide GPUs.
  setVariable(t, 'CUDA_VISIBLE_DEVICES', '');
  delete process.env['CUDA_VISIBLE_DEVICES'];
  return () => readFileSync(asked, 'utf8').trim().split('\n');
}

const MIB = 2 ** 20;

test('the GPUs are those that CUDA_VISIBLE_DEVICES shows, in its order, by number or UUID', { skip }, async (t) => {
  const asked = await fakeNvidiaSmi(t, ['100', '200', '300']);
  assert.deepEqual(gpuNames(), ['GPU A', 'GPU B', 'GPU C']);
  assert.deepEqual([0, 1, 2].map(freeMemory), [100 * MIB, 200 * MIB, 300 * MIB]);
  for (const [visible, names, free] of [
    ['2', ['GPU C'], [300 * MIB, undefined]],
    ['2,0', ['GPU C', 'GPU A'], [300 * MIB, 100 * MIB]],
    ['GPU-bbbb, 0', ['GPU B', 'GPU A'], [200 * MIB, 100 * MIB]],
    ['1,-1,0', ['GPU B'], [200 * MIB, undefined]],
    ['1,7,0', ['GPU B'], [200 * MIB, undefined]],
    ['', [], [undefined, undefined]],
    ['-1', [], [undefined, undefined]],
    ['NoDevFiles', [], [undefined, undefined]],
  ] as const) {
    process.env['CUDA_VISIBLE_DEVICES'] = visible;
    assert.deepEqual([gpuNames(), [0, 1].map(freeMemory)], [names, free], visible);
  }
  assert.ok(asked().some((line) => line.startsWith('-i GPU-bbbb --query-gpu=memory.free')));
});

test('where nvidia-smi does not say how much memory is free, the step that takes it is skipped', {
  skip,
}, async (t) => {
  await fakeNvidiaSmi(t, ['[N/A]', '[Insufficient Permissions]', '7']);
  assert.deepEqual([0, 1, 2, 3].map(freeMemory), [undefined, undefined, 7 * MIB, undefined]);
  const run: GpuRun = {
    device: 0,
    devices: [0],
    models: [],
    small: true,
    folder: await tempFolder(t),
    python: undefined,
    say: () => undefined,
  };
  const { outcome, text } = await memoryStep.run(run);
  assert.equal(outcome, 'skipped');
  assert.match(text, /nvidia-smi does not say how much memory of GPU 0 is free/);
});

test('without nvidia-smi there are no names and no numbers', { skip }, async (t) => {
  setVariable(t, 'PATH', await tempFolder(t));
  assert.deepEqual([gpuNames(), freeMemory(0)], [[], undefined]);
});

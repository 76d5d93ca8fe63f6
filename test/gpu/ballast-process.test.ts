import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { tempFolder } from '../helpers/temp-folder.ts';
import { writeBallastGraph } from './ballast-graph.ts';
import { type BallastProcess, startBallast } from './ballast-process.ts';

/** A process that runs `program` in place of the one that takes memory. */
async function ballastOf(t: TestContext, program: string, limitMs?: number): Promise<BallastProcess> {
  const path = join(await tempFolder(t), 'program.mjs');
  writeFileSync(path, program);
  const ballast = startBallast(path, limitMs);
  t.after(() => ballast.end());
  return ballast;
}

const REQUEST = { path: 'graph.onnx', device: 0, leave: 1 };

test('what takes the memory says how much it took, and its end is waited for, also twice', async (t) => {
  const folder = await tempFolder(t);
  mkdirSync(join(folder, 'graph'));
  const ballast = startBallast();
  t.after(() => ballast.end());
  const path = await writeBallastGraph(join(folder, 'graph', 'ballast.onnx'));
  assert.deepEqual(await ballast.take({ path, device: null, leave: 0 }), { parts: 1 });
  await ballast.end();
  await ballast.end();
});

test('a process that ends without a word, before or after the request, is an error with what it wrote', async (t) => {
  const dies = "process.once('message', () => { console.error('CUDA is broken'); process.exit(7); });";
  const after = await ballastOf(t, dies);
  assert.deepEqual(await after.take(REQUEST), { error: 'the process ended with 7. It wrote: CUDA is broken' });
  await after.end();

  const before = await ballastOf(t, "process.kill(process.pid, 'SIGKILL');");
  // Long enough for it to have ended, mostly; either way the answer is the same.
  await sleep(300);
  assert.deepEqual(await before.take(REQUEST), { error: 'the process ended with SIGKILL. It wrote: nothing' });
  await before.end();
});

test('a process that does not answer in time is an error, and can be ended', async (t) => {
  const silent = "process.on('SIGTERM', () => undefined); process.on('message', () => undefined);";
  const ballast = await ballastOf(t, silent, 200);
  assert.deepEqual(await ballast.take(REQUEST), {
    error: 'the process did not answer in 0.2 s. It wrote: nothing',
  });
  await ballast.end();
});

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { type TestContext, test } from 'node:test';
import { toyModel } from './model-fixtures.ts';

/** Runs `script` in a child process with `openEncoder` and `folder` in scope; returns how it ended and what it printed. */
async function runChild(
  t: TestContext,
  script: string,
): Promise<{ code: number | null; signal: string | null; output: string }> {
  const folder = await toyModel(t, { graph: 'slow.onnx' });
  const module = new URL('../../src/encoder/open-encoder.js', import.meta.url);
  const child = spawn(process.execPath, [
    '--input-type=module',
    '--eval',
    `import { openEncoder } from ${JSON.stringify(module.href)};
     const folder = ${JSON.stringify(folder)};
     const texts = new Array(40).fill('the query '.repeat(20));
     const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
     ${script}`,
  ]);
  let output = '';
  child.stdout.on('data', (data) => (output += data));
  child.stderr.on('data', (data) => (output += data));
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
    child.on('close', (...end) => resolve(end));
  });
  return { code, signal, output };
}

const OPEN = `const encoder = await openEncoder(folder, { workers: 2 });`;
const START = `${OPEN} encoder.encode(texts, { inputType: 'query' }).catch(() => {}); await pause(60);`;

const CASES: Record<string, string> = {
  'a closed encoder lets the process end by itself': `${OPEN} await encoder.close();`,
  'the process may exit right after closing': `${OPEN} await encoder.close(); process.exit(0);`,
  'an idle encoder that was not closed does not keep the process alive': `${OPEN} await encoder.encode(['a'], { inputType: 'query' });`,
  'the process may exit with an idle encoder': `${OPEN} process.exit(0);`,
  'closing during work ends the process cleanly': `${START} await encoder.close(); process.exit(0);`,
  'exiting during work waits for the running texts and does not abort': `${START} process.exit(0);`,
  'exiting while the model is being loaded does not abort': `openEncoder(folder, { workers: 2 }); await pause(PAUSE); process.exit(0);`,
};

for (const [name, script] of Object.entries(CASES)) {
  test(name, { timeout: 60_000 }, async (t) => {
    // Several moments of loading.
    for (const pause of script.includes('PAUSE') ? [0, 60, 150] : [0]) {
      const end = await runChild(t, script.replace('PAUSE', String(pause)));
      assert.deepEqual(end, { code: 0, signal: null, output: '' });
    }
  });
}

test('awaited work keeps the process alive until it is done', { timeout: 60_000 }, async (t) => {
  const script = `${OPEN} const { outcomes } = await encoder.encode(texts, { inputType: 'query' }); console.log(outcomes.length);`;
  assert.deepEqual(await runChild(t, script), { code: 0, signal: null, output: '40\n' });
});

test('an uncaught error during work ends the process with exit code 1, without an abort', {
  timeout: 60_000,
}, async (t) => {
  const end = await runChild(t, `${START} throw new Error('on purpose');`);
  assert.deepEqual([end.code, end.signal], [1, null]);
  assert.match(end.output, /on purpose/);
});

test('closing an encoder frees its memory', {
  timeout: 60_000,
  skip: process.platform === 'linux' ? false : 'the limit on memory was measured on Linux',
}, async (t) => {
  const end = await runChild(
    t,
    `const rss = () => process.memoryUsage().rss / 2 ** 20;
     for (let i = 0; i < 3; i++) await (await openEncoder(folder, { workers: 1 })).close();
     const before = rss();
     for (let i = 0; i < 8; i++) await (await openEncoder(folder, { workers: 1 })).close();
     console.log(rss() - before < 150);`,
  );
  assert.deepEqual(end, { code: 0, signal: null, output: 'true\n' });
});

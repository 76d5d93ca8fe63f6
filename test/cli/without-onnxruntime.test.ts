import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { fileFolder, SAMPLE_PASSAGES } from './run-trawl.ts';

const PROGRAM = fileURLToPath(new URL('../../cli/trawl.js', import.meta.url));
const folder = await fileFolder();
/** Fails to load onnxruntime as Node.js does on a system with musl. */
const hook = join(folder, 'hook.cjs');
writeFileSync(
  hook,
  `const Module = require('node:module');
const load = Module._load;
Module._load = function (name, ...rest) {
  if (name !== 'onnxruntime-node') return load.call(this, name, ...rest);
  throw Object.assign(new Error('Error loading shared library ld-linux-x86-64.so.2: No such file or directory'), { code: 'ERR_DLOPEN_FAILED' });
};
`,
);
const env = { ...process.env, NODE_OPTIONS: `--require=${hook}`, XDG_CACHE_HOME: join(folder, 'cache') };

function trawl(...args: readonly string[]) {
  return spawnSync(process.execPath, [PROGRAM, ...args], { encoding: 'utf8', env });
}

test('where onnxruntime cannot be loaded, trawl doctor says so and what works', () => {
  const { status, stdout, stderr } = trawl('doctor');
  assert.equal(status, 0, stderr);
  assert.match(stdout, /onnxruntime {5}none: .*ld-linux-x86-64\.so\.2: No such file or directory\. .*--bm25/);
  const facts = JSON.parse(trawl('doctor', '--json').stdout) as { onnxruntime: unknown; onnxruntimeProblem: string };
  assert.equal(facts.onnxruntime, null);
  assert.match(facts.onnxruntimeProblem, /cannot be loaded/);
});

test('there, an index of words is built and searched', () => {
  const index = join(folder, 'words');
  const built = trawl('index', SAMPLE_PASSAGES, '--bm25', '--out', index, '--quiet');
  assert.equal(built.status, 0, built.stderr);
  const { stdout, stderr } = trawl('search', index, 'who designed the Eiffel Tower', '--k', '1', '--json');
  assert.match(stdout, /Eiffel Tower/, stderr);
});

test('there, an index of vectors is refused with what would work, and nothing is left', () => {
  const { status, stderr } = trawl('index', SAMPLE_PASSAGES, '--out', join(folder, 'dense'), '--quiet');
  assert.equal(status, 1);
  assert.match(stderr, /\[ENCODER_MISSING\]/);
  assert.match(stderr, /--bm25` without --model.*--model http/s);
});

test('there, trawl demo serves the words of the sample, and says why', async (t) => {
  const child = spawn(process.execPath, [PROGRAM, 'demo', '--port', '0', '--json'], { env });
  t.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'close');
  let notes = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (notes += text));
  const [line] = (await Promise.race([once(child.stdout, 'data'), ended.then(() => assert.fail(notes))])) as [Buffer];
  const { url } = JSON.parse(String(line)) as { url: string };
  const answer = await fetch(`${url}/retrieve`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ queries: ['who designed the Eiffel Tower'], topk: 1 }),
  });
  const { result } = (await answer.json()) as { result: [[{ title?: string; document?: { title: string } }]] };
  assert.match(JSON.stringify(result[0][0]), /Eiffel Tower/);
  assert.match(notes, /Without vectors: onnxruntime, .* cannot be loaded/);
  child.kill('SIGINT');
  assert.deepEqual(await ended, [0, null]);
});

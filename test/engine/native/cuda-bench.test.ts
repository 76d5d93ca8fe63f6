import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { packageRoot } from '../../../src/base/package-root.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { writeProgram } from '../../scripts/old-nodes.ts';

const script = join(packageRoot, 'native', 'bench', 'cuda_bench.sh');
const skip = process.platform === 'linux' ? false : 'the benchmark on a GPU is for Linux';

test('the benchmark on a GPU leaves the files of its user, and removes its own', { skip }, async (t) => {
  const run = await startBench(t, 'exit 0');
  const [code] = await once(run.child, 'close');
  assert.equal(code, 0);
  await checkLeft(run);
  const calls = readFileSync(run.calls, 'utf8').split('\n');
  assert.deepEqual(
    calls.map((call) => /^(rows|search) |--(check)/.exec(call)?.slice(1).join('') ?? /--queries \S+/.exec(call)?.[0]),
    ['check', 'rows', '--queries 1,8,64,1024', 'search', undefined],
  );
});

test('a stopped benchmark on a GPU ends its program and removes its files', { skip }, async (t) => {
  const run = await startBench(t, 'echo $$ > "$0.pid"; exec sleep 60');
  const pid = await numberIn(`${run.program}.pid`);
  run.child.kill('SIGTERM');
  const [code] = await once(run.child, 'close');
  assert.equal(code, 143);
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
  await checkLeft(run);
});

type Run = Awaited<ReturnType<typeof startBench>>;

/** The script with programs that only note their arguments; `after`: what the one for the GPU does then. */
async function startBench(t: TestContext, after: string) {
  const folder = await tempFolder(t);
  const [bin, program, calls] = [join(folder, 'bin'), join(folder, 'trawl-cuda-bench'), join(folder, 'calls')];
  const users = join(folder, 'users');
  mkdirSync(users);
  writeFileSync(join(users, 'file'), '');
  writeProgram(program, `echo "$@" >> ${calls}; ${after}`);
  writeProgram(join(bin, 'python3'), `shift; echo "$@" >> ${calls}`);
  writeProgram(join(bin, 'nvidia-smi'), 'exit 0');
  const child = spawn('bash', [script, program, join(folder, 'out'), '', '1000'], {
    env: { ...process.env, PATH: `${bin}:${process.env.PATH}`, FOLDER: users },
    stdio: 'ignore',
  });
  return { child, program, calls, users, before: readdirSync('/dev/shm') };
}

/** The number in a file, once it is written: a shell makes the file first. */
async function numberIn(path: string): Promise<number> {
  for (;;) {
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    if (text.endsWith('\n')) return Number(text);
    await setTimeout(10);
  }
}

async function checkLeft({ users, calls, before }: Run): Promise<void> {
  assert.deepEqual(readdirSync(users), ['file']);
  for (const [, folder] of readFileSync(calls, 'utf8').matchAll(/--folder (\S+)/g)) assert.ok(!existsSync(folder!));
  const made = readdirSync('/dev/shm').filter((name) => name.startsWith('trawl-cuda-bench.') && !before.includes(name));
  assert.deepEqual(made, []);
}

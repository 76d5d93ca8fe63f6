import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';
import { endOf, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const FOLDER = join(packageRoot, 'deploy', 'slurm');
const TRAWL = `${process.execPath} ${join(packageRoot, 'dist', 'cli', 'trawl.js')}`;

/** Runs the scripts with fake Slurm programs that record their calls. `npm run check -- slurm` runs them on real Slurm. */
async function slurm(t: TestContext) {
  const folder = await tempFolder(t);
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const program = (name: string, body: string): void => {
    writeFileSync(join(bin, name), `#!/bin/bash\nprintf '%s\\n' "${name} $*" >> ${folder}/calls\n${body}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  program('sbatch', `echo "$(grep -c ^sbatch ${folder}/calls)00;cluster"`);
  program('srun', 'while [[ $1 == --* ]]; do shift; done; exec "$@"');
  program('scontrol', '');
  program('stopped', 'exit 75');
  const run = (script: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    endOf(
      spawn('bash', [join(FOLDER, script), ...args], {
        cwd: folder,
        env: { ...process.env, PATH: `${bin}:${process.env.PATH}`, TRAWL, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );
  const calls = (): string[] =>
    existsSync(join(folder, 'calls')) ? readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n') : [];
  return { folder, bin, run, calls };
}

const TASK = { SLURM_ARRAY_JOB_ID: '7', SLURM_ARRAY_TASK_ID: '0', SLURM_CPUS_PER_TASK: '1' };

test('submit.sh submits an array job with one task for each shard, and a merge job that waits for it', async (t) => {
  const { run, calls } = await slurm(t);
  const given = ['--partition', 'cpu', '--', '3', 'indexes/x', 'my corpus.jsonl', '--model', 'm'];
  const { code, stdout } = await run('submit.sh', given);
  assert.deepEqual([code, stdout], [0, 'shards 100 merge 200\n']);
  assert.deepEqual(calls(), [
    `sbatch --parsable --partition cpu --array=0-2 ${FOLDER}/shard.sbatch 3 indexes/x my corpus.jsonl --model m`,
    `sbatch --parsable --partition cpu --dependency=afterok:100 --kill-on-invalid-dep=yes ${FOLDER}/merge.sbatch indexes/x`,
  ]);
});

for (const args of [
  [],
  ['--', '3', 'out'],
  ['3', 'out', 'corpus.jsonl'],
  ['--', '0', 'out', 'c'],
  ['--', 'x', 'out', 'c'],
]) {
  test(`submit.sh ${args.join(' ') || 'without arguments'} shows its usage and submits nothing`, async (t) => {
    const { run, calls } = await slurm(t);
    const { code, stderr } = await run('submit.sh', args);
    assert.equal(code, 2);
    assert.match(stderr, /submit\.sh \[options of sbatch\] -- SHARDS OUT CORPUS\.\.\./);
    assert.doesNotMatch(stderr, /set -/);
    assert.deepEqual(calls(), []);
  });
}

test('shard.sbatch builds one shard, and merge.sbatch merges the shards into the index', async (t) => {
  const { folder, run, calls } = await slurm(t);
  const { code, stdout, stderr } = await run('shard.sbatch', ['1', 'out', SAMPLE_PASSAGES], TASK);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^shard 0\/1 on .*, start 1\n/);
  assert.match(calls()[0]!, /^srun --ntasks=1 --cpus-per-task=1 .*trawl\.js index .* --out out --shard 0\/1$/);
  assert.equal(calls().length, 1, 'nothing is put back into the queue');
  const merged = await run('merge.sbatch', ['out']);
  assert.equal(merged.code, 0, merged.stderr);
  assert.ok(existsSync(join(folder, 'out', 'manifest.json')));
});

test('a task that stopped with a checkpoint is requeued, and a task that failed is not', async (t) => {
  const { bin, run, calls } = await slurm(t);
  const stopped = await run('shard.sbatch', ['1', 'out', 'c.jsonl'], {
    ...TASK,
    TRAWL: join(bin, 'stopped'),
    SLURM_RESTART_COUNT: '2',
  });
  assert.equal(stopped.code, 75);
  assert.match(stopped.stdout, /start 3\n/);
  assert.equal(calls().at(-1), 'scontrol requeue 7_0');
  const before = calls().length;
  const failed = await run('shard.sbatch', ['1', 'out', 'not-there.jsonl'], TASK);
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /\[CORPUS_NOT_FOUND\]/);
  assert.ok(
    calls()
      .slice(before)
      .every((call) => !call.startsWith('scontrol')),
  );
});

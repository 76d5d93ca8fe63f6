import assert from 'node:assert/strict';
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { EXIT } from '../../../cli/program/command.ts';
import type { BuildPlan } from '../../../indexer/building/plan-build.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { jsonOf, runTrawl } from '../run-trawl.ts';

const LINES = Array.from(
  { length: 400 },
  (_, i) => `${JSON.stringify({ id: `p${i}`, contents: `"T"\nsome words ${i}` })}\n`,
);

async function corpusFolder(t: Parameters<typeof tempFolder>[0]): Promise<string> {
  const cwd = await tempFolder(t);
  writeFileSync(join(cwd, 'c.jsonl'), LINES.join(''));
  return cwd;
}

test('--plan prints rows, bytes, memory and time, and writes nothing', async (t) => {
  const cwd = await corpusFolder(t);
  const args = ['index', 'c.jsonl', '--out', 'ix', '--shard-rows', '100'];
  const plan = jsonOf<BuildPlan>(await runTrawl([...args, '--plan', '--json'], { cwd }));
  assert.deepEqual(
    [plan.rows, plan.dimension, plan.shards, plan.corpus],
    [400, 256, 4, [{ name: 'c.jsonl', bytes: LINES.join('').length, lines: 400 }]],
  );
  assert.ok(plan.passagesPerS > 0 && plan.seconds.encode > 0 && plan.tokensPerPassage > 3);
  assert.ok(plan.buildMemoryBytes > 5e7 && plan.freeBytes > 1e6);
  assert.deepEqual(plan.problems, []);
  const said = await runTrawl([...args, '--plan'], { cwd });
  assert.match(
    said.stdout,
    /about 400 passages × 256, 4 shards\n {2}c\.jsonl: .*\ndisk\n {2}vectors\.faiss +\d[\s\S]*\nmemory\n[\s\S]*\ntime/,
  );
  assert.deepEqual(readdirSync(cwd), ['c.jsonl']);
  // The build's files have the planned sizes.
  assert.equal((await runTrawl([...args, '--shard-rows', '400', '--quiet'], { cwd })).code, 0);
  const one = jsonOf<BuildPlan>(await runTrawl(['index', 'c.jsonl', '--out', 'x', '--plan', '--json'], { cwd }));
  const size = (name: string): number => statSync(join(cwd, 'ix', 'shard-00000', name)).size;
  assert.equal(one.bytes.vectors, size('vectors.faiss'));
  if (existsSync(join(cwd, 'ix', 'shard-00000', 'codes.i8'))) assert.equal(one.bytes.codes, size('codes.i8'));
  const passages = size('passages.sqlite');
  assert.ok(Math.abs(one.bytes.passages - passages) < 0.3 * passages + 20_000, `${one.bytes.passages} for ${passages}`);
});

test('jobs build the shards, trawl merge makes the index, and each reports its progress as JSON', async (t) => {
  const cwd = await corpusFolder(t);
  const reports = [];
  for (const i of [0, 1]) {
    const args = ['index', 'c.jsonl', '--out', 'ix', '--shard', `${i}/2`, '--json'];
    reports.push(
      jsonOf<{ rows: number; complete: number; shards: number; built: boolean }>(await runTrawl(args, { cwd })),
    );
  }
  assert.deepEqual(
    reports.map(({ rows, complete, shards, built }) => [rows, complete, shards, built]),
    [
      [200, 1, 2, true],
      [200, 2, 2, true],
    ],
  );
  const merged = jsonOf<{ merged: boolean; rows: number; shards: number }>(
    await runTrawl(['merge', 'ix', '--json'], { cwd }),
  );
  assert.deepEqual([merged.merged, merged.rows, merged.shards], [true, 400, 2]);
  for (const isa of [{}, { TRAWL_ISA: 'reference' }]) {
    const { code, stdout, stderr } = await runTrawl(['search', 'ix', 'some words 399', '--k', '2', '--quiet'], {
      cwd,
      env: isa,
    });
    assert.equal(code, EXIT.ok, stderr);
    assert.match(stdout, /id p\d+/);
  }
  const again = await runTrawl(['merge', 'ix'], { cwd });
  assert.match(again.stderr, /is already an index/);
});

for (const [args, reason] of [
  [['--shard', '2'], /expected I\/N, such as 0\/8/],
  [['--shard', '8/8'], /counted from 0: the last one is 7\/8/],
  [['--shard', '0/0'], /expected I\/N/],
  [['--shard', '0/2', '--shard-rows', '10'], /Omit --shard-rows/],
  [['--shard-rows', '0'], /shard-rows/],
] as const) {
  test(`trawl index ${args.join(' ')} is a usage error`, async (t) => {
    const cwd = await corpusFolder(t);
    const { code, stderr } = await runTrawl(['index', 'c.jsonl', '--out', 'ix', ...args], { cwd });
    assert.equal(code, EXIT.usage);
    assert.match(stderr, reason);
    assert.deepEqual(readdirSync(cwd), ['c.jsonl']);
  });
}

test('a corpus from a pipe is built in one shard, and can be neither planned nor split into shards', {
  skip: process.platform === 'win32' && '/dev/stdin does not exist on Windows',
}, async (t) => {
  const cwd = await corpusFolder(t);
  const { spawnSync } = await import('node:child_process');
  const { packageRoot } = await import('../../../src/base/package-root.ts');
  const trawl = (options: string): ReturnType<typeof spawnSync> =>
    spawnSync(
      'sh',
      [
        '-c',
        `cat c.jsonl | "${process.execPath}" "${packageRoot}/dist/cli/trawl.js" index --format jsonl /dev/stdin ${options}`,
      ],
      {
        cwd,
        encoding: 'utf8',
      },
    );
  assert.equal(trawl('--out ix --quiet').status, 0);
  assert.match(String(trawl('--out a --shard 0/2').stderr), /from a pipe cannot be divided into shards.*\[USAGE\]/);
  assert.match(String(trawl('--out b --plan').stderr), /from a pipe cannot be planned.*\[USAGE\]/);
  assert.equal((await runTrawl(['index', 'c.jsonl', '--out', 'file', '--quiet'], { cwd })).code, 0);
  const generation = async (index: string): Promise<string> =>
    jsonOf<{ generation: string }>(await runTrawl(['inspect', index, '--json'], { cwd })).generation;
  assert.equal(await generation('ix'), await generation('file'));
  assert.deepEqual(readdirSync(cwd).sort(), ['c.jsonl', 'file', 'ix']);
});

import assert from 'node:assert/strict';
import { cp, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { BenchServeResult } from '../../../bench/serve/bench-serve.ts';
import type { ServeRecord } from '../../../bench/serve/serve-case.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { fileFolder, jsonOf, runTrawl, sampleIndex } from '../../cli/run-trawl.ts';

test('bench serve measures a real server without errors and writes the records', async () => {
  const folder = await fileFolder();
  const index = await sampleIndex(folder);
  const calls = join(folder, 'calls.jsonl');
  const lines = Array.from({ length: 40 }, (_, i) => ({
    source: 's',
    traj: i >> 1,
    turn: i & 1,
    queries: [`question ${i}`],
  }));
  await writeFile(calls, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const out = join(folder, 'result.json');
  const few = ['--runs', '1', '--seconds', '1', '--calls', calls, '--cache', folder];
  const ended = await runTrawl([
    ...['bench', 'serve', '--index', index, '--against', 'none', '--loads', 'lone,verl,rollouts,overhead,generator'],
    ...[...few, '--out', out, '--json'],
  ]);
  const records = jsonOf<ServeRecord[]>(ended);
  assert.deepEqual(
    new Set(records.map(({ load }) => load)),
    new Set(['lone', 'verl', 'rollouts', 'overhead', 'generator']),
  );
  for (const record of records) {
    assert.equal(record.case, 'serve');
    assert.deepEqual([record.errors, record.wrong, record.ratioToBaseline], [0, 0, null], JSON.stringify(record));
    assert.ok(
      record.requests > 0 && record.queriesPerS > 0 && record.p50Ms <= record.p99Ms && record.p99Ms <= record.maxMs,
    );
    if (record.load !== 'generator') assert.ok(record.overheadP50Ms! > 0);
  }
  const written = JSON.parse(await readFile(out, 'utf8')) as BenchServeResult;
  assert.deepEqual(written.records, records);
  assert.equal(written.rows, 270);
});

test('a cached index is served with the named model, also if the model has moved since the index was built', async () => {
  const folder = await fileFolder();
  const [first, second] = [join(folder, 'first', 'moved'), join(folder, 'second', 'moved')];
  await cp(join(packageRoot, 'models', 'token-average-256'), first, { recursive: true });
  // Under its own name it would be found in models/.
  const description = join(first, 'trawl-model.json');
  const named = { ...(JSON.parse(await readFile(description, 'utf8')) as object), name: 'moved' };
  await writeFile(description, JSON.stringify(named));
  const sample = join(packageRoot, 'corpus', 'sample');
  const calls = join(folder, 'moved-calls.jsonl');
  await writeFile(calls, `${JSON.stringify({ source: 's', traj: 0, turn: 0, queries: ['a question'] })}\n`);
  const bench = (model: string) =>
    runTrawl([
      ...['bench', 'serve', '--model', model, '--corpus', join(sample, 'passages.jsonl'), '--calls', calls],
      ...['--loads', 'lone', '--against', 'none', '--runs', '1', '--seconds', '1', '--cache', folder, '--json'],
    ]);
  assert.equal(jsonOf<ServeRecord[]>(await bench(first))[0]!.errors, 0);
  await cp(first, second, { recursive: true });
  await rename(first, `${first}-away`);
  assert.equal(jsonOf<ServeRecord[]>(await bench(second))[0]!.errors, 0);
});

test('an option of another case, an unknown load and a missing file are refused', async () => {
  for (const [args, message] of [
    [['serve', '--dimension', '3'], /--dimension belongs to/],
    [['flat', '--loads', 'lone'], /--loads belongs to/],
    [['serve', '--loads', 'none-such'], /--loads is "none-such"/],
    [['serve', '--calls', '/nonexistent'], /--calls/],
    [['serve', '--precision', 'int8,float32'], /`trawl bench serve` takes one/],
    [['serve', '--precision', 'int4'], /--precision is "int4"; expected some of float32, float16, bfloat16, int8/],
  ] as const) {
    const { code, stderr } = await runTrawl(['bench', ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, message);
  }
});

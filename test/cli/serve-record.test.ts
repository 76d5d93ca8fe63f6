import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RecordStatistics } from '../../training/records/record-statistics.ts';
import { fileFolder, jsonOf, postJson, runTrawl, sampleIndex, serveIndex } from './run-trawl.ts';

const folder = await fileFolder();
const index = await sampleIndex(folder);

function queriesIn(path: string): string[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => (JSON.parse(line) as { query: string }).query);
}

async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await check())) await sleep(10);
}

test('the --record file of a running server can be rotated by renaming it, and is made again after it was removed', async (t) => {
  const records = join(folder, 'records');
  const record = join(records, 'record.jsonl');
  mkdirSync(records);
  const { url, child, ended } = await serveIndex(t, index, ['--record', record]);
  const ask = async (query: string): Promise<void> => {
    assert.equal((await postJson(url, { queries: [query] })).status, 200);
  };
  const dropped = async (): Promise<number> => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return Number(/^trawl_dropped_lines_total\{what="record"\} (\d+)$/m.exec(text)?.[1] ?? 0);
  };

  await ask('first');
  await until(() => queriesIn(record).length === 1);
  renameSync(record, `${record}.2`);
  child.kill('SIGHUP');
  await until(() => existsSync(record));
  await ask('second');
  await until(() => queriesIn(record).length === 1);
  renameSync(record, `${record}.1`);
  await ask('third');
  await until(() => existsSync(record) && queriesIn(record).length === 1);
  assert.deepEqual([`${record}.2`, `${record}.1`, record].map(queriesIn), [['first'], ['second'], ['third']]);
  assert.equal(await dropped(), 0);

  rmSync(record);
  await ask('removed');
  await until(() => queriesIn(record).length === 1);
  assert.deepEqual([queriesIn(record), await dropped()], [['removed'], 0]);

  rmSync(records, { recursive: true });
  await ask('lost 1');
  await until(async () => (await dropped()) === 1);
  await ask('lost 2');
  await until(async () => (await dropped()) === 2);
  mkdirSync(records);
  await ask('back');
  await until(() => queriesIn(record).length === 1);
  assert.deepEqual([queriesIn(record), await dropped()], [['back'], 2]);

  child.kill('SIGTERM');
  const end = await ended;
  assert.equal(end.code, 0);
  const said = end.stderr.split('\n').filter((line) => line.includes('--record'));
  assert.deepEqual(
    said.map((line) => /was removed|ENOENT/.exec(line)?.[0]),
    ['was removed', 'ENOENT', 'was removed'],
    'each removal and each series of failures is reported once',
  );
});

test('a rotated and compressed record has what its requests said, and trawl records reads it', async (t) => {
  const record = join(folder, 'origins.jsonl');
  const { url, child, ended } = await serveIndex(t, index, ['--record', record, '--record-mib', '1']);
  const queries = Array.from({ length: 500 }, (_, i) => `query ${i} ${'about bridges and rivers '.repeat(50)}`);
  const trajectory = queries.map((_, i) => `t-${i}`);
  for (const turn of [1, 2, 3]) {
    const response = await fetch(`${url}/retrieve?trawl-policy=run-1`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-trawl-split': 'train' },
      body: JSON.stringify({ queries, record: { trajectory, turn } }),
    });
    assert.equal(response.status, 200);
    await response.text();
  }
  await until(() => existsSync(`${record}.1.zst`));
  child.kill('SIGTERM');
  assert.equal((await ended).code, 0);
  const stats = jsonOf<RecordStatistics>(await runTrawl(['records', 'stats', record, '--json']));
  assert.deepEqual([stats.queries, stats.trajectories.named, stats.trajectories.turns], [1500, 500, 1500]);
  assert.deepEqual(
    [stats.policies, stats.splits, stats.turns],
    [{ 'run-1': 1500 }, { train: 1500 }, { 1: 500, 2: 500, 3: 500 }],
  );
  const one = await runTrawl(['records', 'cat', record, '--trajectory', 't-7']);
  assert.equal(one.stdout.trim().split('\n').length, 3);
});

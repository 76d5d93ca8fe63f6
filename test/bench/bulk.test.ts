import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BulkRecord } from '../../bench/bulk/bench-bulk.ts';
import { jsonOf, runTrawl } from '../cli/run-trawl.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

test('bench bulk times the engine and a bulk search with each output over the same queries', async (t) => {
  const cache = await tempFolder(t);
  const sizes = ['--rows', '3000', '--dimension', '64', '--runs', '2', '--queries', '700', '--k', '5'];
  const args = ['bench', 'bulk', ...sizes, '--cache', cache, '--quiet'];
  const records = jsonOf<BulkRecord[]>(await runTrawl([...args, '--json']));
  assert.deepEqual(
    records.map((record) => record.case),
    ['engine', 'npy', 'parquet', 'jsonl'],
  );
  for (const { rows, dimension, queries, k, seconds, queriesPerS, ratios } of records) {
    assert.deepEqual([rows, dimension, queries, k], [3_000, 64, 700, 5]);
    assert.ok(Math.abs(queriesPerS * seconds - 700) < 1e-6);
    assert.ok(ratios[0] > 0 && ratios[0] <= ratios[1]);
  }
  assert.equal(records[0]!.ratioToEngine, 1);
  const { stdout, stderr } = await runTrawl(args);
  assert.match(stdout, /700 queries, k = 5, over 3000 × 64/, stderr);
  assert.match(stdout, /\| parquet \|/);
});

test('bench bulk refuses the options of other cases', async () => {
  const { code, stderr } = await runTrawl(['bench', 'bulk', '--texts', 'x']);
  assert.equal(code, 2);
  assert.match(stderr, /--texts belongs to `trawl bench embed`/);
});

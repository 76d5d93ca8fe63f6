import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FilterRecord } from '../../bench/filter/bench-filter.ts';
import { jsonOf, runTrawl } from '../cli/run-trawl.ts';

test('bench filter counts the rows that pass each filter, and times it', async () => {
  const records = jsonOf<FilterRecord[]>(
    await runTrawl(['bench', 'filter', '--rows', '20000', '--runs', '2', '--json', '--quiet']),
  );
  assert.ok(records.length >= 6);
  for (const { rows, passing, evaluateMs, cachedMs, runs } of records) {
    assert.deepEqual([rows, runs], [20_000, 2]);
    assert.ok(passing >= 0 && passing < rows);
    assert.ok(evaluateMs > 0 && cachedMs >= 0);
  }
  const half = records.find(({ filter }) => filter === 'part < 500000')!;
  assert.ok(Math.abs(half.passing / half.rows - 0.5) < 0.02);
});

test('bench filter refuses the options of other cases', async () => {
  const { code, stderr } = await runTrawl(['bench', 'filter', '--k', '3']);
  assert.equal(code, 2);
  assert.match(stderr, /--k belongs to `trawl bench flat`/);
});

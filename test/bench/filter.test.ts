import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { FilterRecord } from '../../bench/filter/bench-filter.ts';
import type { FilteredSearchRecord } from '../../bench/filter/filtered-searches.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { jsonOf, runTrawl, SAMPLE, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

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
  const half = records.find((record) => record.case === 'part < 500000')!;
  assert.ok(Math.abs(half.passing / half.rows - 0.5) < 0.02);
});

test('bench filter times searches among shares of the rows, by vectors and by words', {
  skip: loadKernel().ok ? false : 'the native engine is not built',
}, async (t) => {
  const cache = await tempFolder(t);
  const sizes = ['--rows', '3000', '--dimension', '64', '--runs', '1', '--queries', '1,3', '--k', '5'];
  const texts = ['--corpus', SAMPLE_PASSAGES, '--query-texts', join(SAMPLE, 'questions.jsonl')];
  const args = ['bench', 'filter', ...sizes, ...texts, '--searches', 'dense,bm25', '--cache', cache];
  const records = jsonOf<FilteredSearchRecord[]>(await runTrawl([...args, '--json', '--quiet'])).filter(
    (record) => 'mode' in record,
  );
  assert.deepEqual(
    records.slice(0, 6).map((record) => record.case),
    [...[100, 50, 10, 1, 0.1].map((percent) => `dense, 1 query, ${percent} %`), 'dense, 3 queries, 100 %'],
  );
  assert.equal(records.length, 2 * 2 * 5);
  for (const { mode, rows, passing, queries, k, medianMs, shareOfUnfiltered } of records) {
    assert.ok(['dense', 'bm25'].includes(mode));
    assert.deepEqual([rows, k, queries === 1 || queries === 3], [3_000, 5, true]);
    assert.ok(passing <= rows && medianMs > 0 && shareOfUnfiltered > 0);
  }
  const [all, half, tenth] = records.map(({ passing }) => passing / 3_000);
  assert.ok(all === 1 && Math.abs(half! - 0.5) < 0.05 && Math.abs(tenth! - 0.1) < 0.03);
  const report = await runTrawl([...args, '--quiet']);
  assert.match(report.stdout, /\|\s+bm25 \| 3\s+\| +\d/);
});

test('bench filter refuses the options of other cases, and unknown modes', async () => {
  const { code, stderr } = await runTrawl(['bench', 'filter', '--batch', '3']);
  assert.equal(code, 2);
  assert.match(stderr, /--batch belongs to `trawl bench embed`/);
  const unknown = await runTrawl(['bench', 'filter', '--searches', 'sparse']);
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /--searches is "sparse"; expected none, or some of dense, bm25/);
});

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { tableText } from '../../../bench/figures/table-text.ts';
import { TABLES } from '../../../bench/figures/tables.ts';
import { gpuSearchResult } from '../../../bench/reproduce/gpu-search-parts.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const MACHINE = { date: '2026-01-01T00:00:00.000Z', processor: 'one' };
const CPU = { part: 'cpu', queries: 8, search_ms: 30, same_bits_as_gpu: 'yes' };
const CHECK = { part: 'check', cases: 58, different: 0 };
const TORCH = { part: 'baseline', type: 'float16', queries: 8, search_ms: 6, recall: 1 };

/** What the benchmark writes; `changed` replaces its parts. */
async function resultOf(t: TestContext, changed: { cpu?: object[]; check?: object; torch?: object } = {}) {
  const { cpu = [CPU], check = CHECK, torch = TORCH } = changed;
  const folder = await tempFolder(t);
  const gpu = { search_ms: 3, search_best_ms: 2, search_worst_ms: 4, device_ms: 2, hits_per_query: 9 };
  const write = (name: string, parts: object[]): void => writeFileSync(join(folder, name), JSON.stringify(parts));
  write('search.json', [
    { part: 'machine', threads: 2 },
    { part: 'index', rows: 1000, dimension: 64 },
    { part: 'upload', gpu: 'a GPU', seconds: 1, gpu_bytes: 100 },
    { part: 'gpu', queries: 8, k: 10, ...gpu, rescored_per_query: 5 },
    ...cpu,
  ]);
  write('check.json', [{ part: 'machine', threads: 2 }, check]);
  write('baseline.json', [{ part: 'machine', torch: '2.11' }, torch]);
  writeFileSync(join(folder, 'gpu.csv'), 'name, driver_version\na GPU, 580, x\n');
  return gpuSearchResult(folder, MACHINE);
}

test('the files of the benchmark on a GPU become one result', async (t) => {
  const { checked, searches, baselines, driver } = await resultOf(t);
  assert.deepEqual(
    [checked, searches[0]!.cpuMs, searches[0]!.sameBits, baselines[0]!.recall, driver],
    [{ cases: 58, different: 0 }, 30, true, 1, '580'],
  );
});

test('a result needs every part of Trawl, and equal answers', async (t) => {
  const error = 'query 3 has 9 results on the GPU, 10 on the CPU';
  await assert.rejects(
    resultOf(t, { check: { part: 'check', error } }),
    /the part check failed: query 3 has 9 results/,
  );
  await assert.rejects(resultOf(t, { cpu: [{ part: 'cpu', error }] }), /the part cpu failed: query 3 has 9 results/);
  await assert.rejects(resultOf(t, { cpu: [] }), /lacks a part cpu; its logs say why/);
});

test('a type of torch that failed has empty cells', async (t) => {
  const result = await resultOf(t, { torch: { part: 'baseline', type: 'float16', error: 'out of memory' } });
  assert.deepEqual(result.baselines, []);
  assert.equal(
    tableText(TABLES['gpu-search']!, result).split('\n').at(-1),
    '| 8 | 3.0 ms |  |  |  |  |  | 30.0 ms | 10 × |',
  );
});

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { readAllResult } from '../../../bench/all/all-file.ts';
import { resultOf } from '../../../bench/all/all-result.ts';
import { sizeComputed } from '../../../bench/tables/size-computed.ts';
import type { SizeResult, SizeState } from '../../../bench/tables/size-figures.ts';
import { sizeFigures, sizeRequests } from '../../../bench/tables/size-tables.ts';
import { packageRoot } from '../../../src/base/package-root.ts';

const one = { queries: 1, runs: 3, ms: 800, searchMs: 790, readBytes: 0, fastestMs: 700, slowestMs: 900 };
const state: SizeState = {
  requests: [one, { queries: 512, runs: 1, ms: 40_000, readBytes: 12e9 }],
  checkedQueries: 8,
  anonymousBytes: 200e6,
  mappedBytes: 9e9,
  cached: { prefilters: 1.0001, codes: 0.5 },
  loadBefore: 0,
};
const result = {
  rows: 21_000_000,
  bytes: { rows: 32.3e9, codes: 16.6e9, prefilters: 7e9, passages: 1.4e9 },
  steps: {
    index: { seconds: 2400, peakBytes: 600e6, stageMs: { read: 380_000, vectors: 1_700_000, finish: 100_000 } },
    scan: { seconds: 434 },
    plan: {
      searches: [
        { queries: 1, ms: 700 },
        { queries: 512, ms: 21_000 },
      ],
    },
    open: { cold: { readyMs: 3000, firstMs: 12_000 }, warm: { readyMs: 2000, firstMs: 1000 } },
    memory: state,
    prefilter: {
      ...state,
      limitBytes: 8.5e9,
      requests: [one, { queries: 512, runs: 0, ms: null, longerThanMs: 240_000 }],
    },
  },
} as unknown as SizeResult;

const computed = (requests: SizeState['requests'], readBytesPerS: number): string[][] =>
  sizeComputed({
    ...result,
    steps: {
      ...result.steps,
      memory: { ...state, requests },
      plan: { ...result.steps.plan, trial: { isa: 'avx2', readBytesPerS } as never },
    },
  });

test('computed times are those of two cores divided by the multiple of the cores, but no shorter than reading the prefilters', () => {
  const [header, , two, eight, thirtyTwo, many, vnni] = computed(state.requests, 20e9);
  assert.deepEqual(header, ['cores', 'instructions', 'memory', '1 query', '512 queries', 'queries/s at 512']);
  assert.deepEqual(two, ['2', 'avx2, measured', '20 GB/s', '0.80 s', '40 s', '13']);
  assert.deepEqual(eight, ['8', 'avx2', '80 GB/s', '0.20 s', '10 s', '51']);
  // 7 GB at 205 GB/s take 0.034 s, less than a sixteenth of 0.8 s; at 410 GB/s 0.017 s, more than a 56th.
  assert.deepEqual(thirtyTwo!.slice(2, 5), ['205 GB/s', '0.050 s', '2.5 s']);
  assert.deepEqual(many!.slice(2, 5), ['410 GB/s', '0.017 s', '0.71 s']);
  // 21 times 20.5 ms and 522 ms.
  assert.deepEqual(vnni, ['2', 'avx512-vnni', '67 GB/s', '0.43 s', '11 s', '47']);
});

test('the times with AVX-512 VNNI are those of bench-medium.json', async () => {
  const all = await readAllResult(join(packageRoot, 'bench', 'results', 'bench-medium.json'));
  const { records } = resultOf(all, 'flat')!;
  const counts = [1, 16, 64, 512];
  const requests = counts.map((queries) => ({ ...one, queries }));
  const plan = { ...result.steps.plan, trial: { isa: 'avx2', readBytesPerS: 20e9 } as never };
  const steps = { ...result.steps, memory: { ...state, requests }, plan };
  const lines = sizeComputed({ ...result, rows: 1_000_000, bytes: { ...result.bytes, prefilters: 0 }, steps });
  const vnni = lines.find(([cores, isa]) => cores === '2' && isa === 'avx512-vnni')!;
  assert.equal(vnni[2], `${Math.round(resultOf(all, 'machine')!.peaks!.readBytesPerS / 1e9)} GB/s`);
  const expected = counts.map((queries) => {
    const record = records.find(({ engine, queries: those }) => engine === 'trawl' && those === queries)!;
    return Number((record.medianMs / 1000).toPrecision(2));
  });
  assert.deepEqual(vnni.slice(3, -1).map(Number.parseFloat), expected);
});

test('a size whose measurement took longer than its limit has no computed times', () => {
  const [header] = computed([one, { queries: 512, runs: 0, ms: null, longerThanMs: 240_000 }], 20e9);
  assert.deepEqual(header, ['cores', 'instructions', 'memory', '1 query', 'queries/s at 1']);
});

test('a request that took longer than its limit is in the table as longer than that, without further figures', () => {
  const [, , lone, many] = sizeRequests(result);
  assert.deepEqual(lone, ['1', '0.70 s', '0.80 s', '0.0 MB', '0.80 s', '0.0 MB']);
  assert.deepEqual(many, ['512', '21.0 s', '40.0 s', '12.00 GB', '> 240.0 s', '']);
});

test('the table of sizes says what the page cache held, never more than all, and unknown where that could not be asked', () => {
  const text = sizeFigures(result).join('\n');
  assert.match(text, /100 % of the prefilters, 50 % of the codes, unknown of the rows/);
  assert.match(text, /8 of 8/);
});

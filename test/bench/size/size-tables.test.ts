import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SizeResult, SizeState } from '../../../bench/tables/size-figures.ts';
import { sizeFigures, sizeRequests } from '../../../bench/tables/size-tables.ts';

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

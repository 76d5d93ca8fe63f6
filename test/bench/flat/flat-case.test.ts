import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runFlatCase } from '../../../bench/flat/flat-case.ts';
import type { FlatEngine } from '../../../bench/flat/flat-engine.ts';
import { EngineUnavailable } from '../../../bench/script-process.ts';

const FLAT_CASE = {
  rows: 100,
  dimension: 4,
  dtype: 'float32',
  k: 1,
  threads: 1,
  runs: 2,
  queryCounts: [1, 2],
  queries: 6,
};

interface FakeOptions {
  readonly ms: number;
  readonly log?: string[];
  /** The search (counted from 0) or the memory request that fails. */
  readonly failAt?: number | 'memory';
  readonly error?: Error;
}

function fakeEngine(name: FlatEngine['name'], options: FakeOptions): FlatEngine {
  const { ms, log = [], failAt, error = new EngineUnavailable('it died') } = options;
  let searches = 0;
  return {
    name,
    version: `${name} 1`,
    async search(first, count) {
      log.push(`${name} ${first}+${count}`);
      if (searches++ === failAt) throw error;
      return { ms, rows: Array.from({ length: count }, () => 7), scores: Array.from({ length: count }, () => 0.5) };
    },
    async residentBytes() {
      if (failAt === 'memory') throw error;
      return 1000;
    },
    close: async () => undefined,
  };
}

function run(engines: readonly FlatEngine[], signal = new AbortController().signal) {
  const lost: string[] = [];
  const onLost = (engine: string, reason: string): void => void lost.push(`${engine}: ${reason}`);
  return { lost, records: runFlatCase(FLAT_CASE, engines, { signal, pauseMs: 0, onLost, onStep: () => undefined }) };
}

test('engines alternate with the same queries, and the next run has other queries', async () => {
  const log: string[] = [];
  const { records } = run([fakeEngine('trawl', { ms: 2, log }), fakeEngine('faiss', { ms: 10, log })]);
  const [, , , two] = await records;
  assert.deepEqual(log.slice(0, 6), ['trawl 0+1', 'faiss 0+1', 'trawl 1+1', 'faiss 1+1', 'trawl 2+1', 'faiss 2+1']);
  assert.deepEqual(log.slice(6, 8), ['trawl 0+2', 'faiss 0+2']);
  assert.equal(two!.engine, 'faiss');
  assert.equal(two!.ratioToTrawl, 5);
  assert.equal(two!.dotsPerS, 20_000);
  assert.equal(two!.agreement, 1);
});

test('an engine with a limit is measured up to it, and engines without one with every number of queries', async () => {
  const engines = [fakeEngine('trawl', { ms: 1 }), fakeEngine('faiss', { ms: 3 }), fakeEngine('numpy', { ms: 2 })];
  const steps: string[] = [];
  const context = {
    signal: new AbortController().signal,
    pauseMs: 0,
    onLost: () => assert.fail('none is lost'),
    onStep: (step: string) => void steps.push(step),
  };
  const limited = { ...FLAT_CASE, queryCounts: [1, 3, 2], mostQueries: { numpy: 2 } };
  const measured = (await runFlatCase(limited, engines, context)).map(({ engine, queries }) => `${engine} ${queries}`);
  assert.deepEqual(steps, ['searches of 1 query', 'searches of 3 queries', 'searches of 2 queries']);
  assert.deepEqual(measured, [
    ...['trawl 1', 'faiss 1', 'numpy 1'],
    ...['trawl 3', 'faiss 3'],
    ...['trawl 2', 'faiss 2', 'numpy 2'],
  ]);
});

for (const failAt of [0, 2, 4, 'memory'] as const) {
  test(`a baseline that ends (${failAt}) is left out, and the others continue`, async () => {
    const engines = [
      fakeEngine('trawl', { ms: 1 }),
      fakeEngine('faiss', { ms: 1, failAt }),
      fakeEngine('numpy', { ms: 1 }),
    ];
    const { lost, records } = run(engines);
    const measured = (await records).map(({ engine, queries }) => `${engine} ${queries}`);
    const faiss = failAt === 4 ? ['faiss 1'] : [];
    assert.deepEqual(measured, ['trawl 1', ...faiss, 'numpy 1', 'trawl 2', 'numpy 2']);
    assert.deepEqual(lost, ['faiss: it died']);
  });
}

test('an error of Trawl fails the benchmark', async () => {
  await assert.rejects(run([fakeEngine('trawl', { ms: 1, failAt: 1, error: new Error('wrong') })]).records, /wrong/);
});

test('an abort ends the benchmark', async () => {
  const { records } = run([fakeEngine('trawl', { ms: 1 })], AbortSignal.abort());
  await assert.rejects(records, { code: 'CANCELLED' });
});

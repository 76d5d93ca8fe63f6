import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runEmbedCase, smallestCosine } from '../../../bench/embed/embed-case.ts';
import type { EmbedEngine } from '../../../bench/embed/embed-engine.ts';
import { operations } from '../../../bench/embed/encoder-operations.ts';
import { EngineUnavailable } from '../../../bench/script-process.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const SHAPE = { layers: 2, hidden: 4, intermediate: 8 };
const EMBED_CASE = { threads: 1, runs: 2, passages: 40, queriesPerRun: 3, batch: 32, shape: SHAPE };

interface FakeOptions {
  readonly ms: number;
  readonly log?: string[];
  /** The encoding, counted from 0, that fails. */
  readonly failAt?: number;
  readonly vectors?: readonly number[];
}

function fakeEngine(name: EmbedEngine['name'], { ms, log = [], failAt, vectors }: FakeOptions): EmbedEngine {
  let encodings = 0;
  return {
    name,
    precision: 'float32',
    version: `${name} 1`,
    async encode(first, count) {
      log.push(`${name} ${first}+${count}`);
      if (encodings++ === failAt) throw new EngineUnavailable('it died');
      return { ms: ms * count, tokens: 10 * count, squaredTokens: 100 * count };
    },
    async query(first, count) {
      log.push(`${name} q${first}+${count}`);
      return Array.from({ length: count }, (_, i) => first + i + 1);
    },
    vectors: async (count) => vectors ?? new Array<number>(2 * count).fill(1),
    matmul: async () => undefined,
    residentBytes: async () => 1000,
    close: async () => undefined,
  };
}

function run(engines: readonly EmbedEngine[], signal = new AbortController().signal) {
  const lost: string[] = [];
  const onLost = (engine: string, reason: string): void => void lost.push(`${engine}: ${reason}`);
  const steps: string[] = [];
  const onStep = (step: string): void => void steps.push(step);
  return { lost, steps, records: runEmbedCase(EMBED_CASE, engines, { signal, pauseMs: 0, onLost, onStep }) };
}

test('encoders alternate over the same texts, after a warm-up on some of them', async () => {
  const log: string[] = [];
  const { records, steps } = run([
    fakeEngine('trawl', { ms: 2, log }),
    fakeEngine('sentence-transformers', { ms: 5, log }),
  ]);
  const [trawl, baseline] = await records;
  assert.deepEqual(steps, ['run 1 of 2', 'run 2 of 2']);
  const [a, b] = ['trawl', 'sentence-transformers'];
  assert.deepEqual(log, [
    ...[`${a} 0+32`, `${a} q0+3`, `${b} 0+32`, `${b} q0+3`],
    ...[`${a} 0+40`, `${b} 0+40`, `${a} q0+3`, `${b} q0+3`],
    ...[`${a} 0+40`, `${b} 0+40`, `${a} q3+3`, `${b} q3+3`],
  ]);
  assert.equal(trawl!.textsPerS, 500);
  assert.equal(trawl!.tokensPerS, 5000);
  assert.equal(trawl!.ratioToBaseline, 2.5);
  assert.equal(trawl!.cosineToBaseline, 1);
  // The warm-up's queries are not among 1, 2, 3, 4, 5, 6.
  assert.equal(trawl!.queryP50Ms, 3.5);
  assert.equal(baseline!.ratioToBaseline, 1);
  assert.equal(baseline!.cosineToBaseline, null);
});

test('a baseline that dies is left out; if Trawl dies, that is an error', async () => {
  const { records, lost } = run([
    fakeEngine('trawl', { ms: 2 }),
    fakeEngine('sentence-transformers', { ms: 5, failAt: 1 }),
  ]);
  const [trawl, ...others] = await records;
  assert.deepEqual([others, lost], [[], ['sentence-transformers: it died']]);
  assert.deepEqual([trawl!.ratioToBaseline, trawl!.cosineToBaseline], [null, null]);
  await assert.rejects(run([fakeEngine('trawl', { ms: 2, failAt: 0 })]).records, EngineUnavailable);
});

test('a cancelled measurement stops', async () => {
  const cancelled = AbortSignal.abort();
  await assert.rejects(run([fakeEngine('trawl', { ms: 2 })], cancelled).records, trawlError('CANCELLED'));
});

test('smallestCosine compares row by row, and is null for different dimensions', () => {
  assert.equal(smallestCosine([3, 0, 1, 1], [1, 0, 0, 2], 2), 1 / Math.sqrt(2));
  assert.equal(smallestCosine([1, 0, 1, 1], [1, 0], 2), null);
});

test('the operations of an encoder are the sum over its matrix products', () => {
  const [n, h, i] = [5, SHAPE.hidden, SHAPE.intermediate];
  const product = (rows: number, inner: number, columns: number): number => 2 * rows * inner * columns;
  const layer = 4 * product(n, h, h) + product(n, h, i) + product(n, i, h) + product(n, h, n) + product(n, n, h);
  assert.equal(operations(SHAPE, n, n * n), SHAPE.layers * layer);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bootstrapInterval, randomisationTest } from '../../evaluation/significance.ts';
import { runTorchPeer, withoutTorch } from '../helpers/peers.ts';
import { seededRandom } from '../helpers/seeded-random.ts';

interface Reply {
  readonly p: number;
  readonly low: number;
  readonly high: number;
}

// sentence-transformers needs scipy, so that torch's environment has it.
const skip = withoutTorch();

const scipy = async (differences: readonly (readonly number[])[]): Promise<Reply[]> =>
  (await runTorchPeer('scipy_significance.py', { differences })) as Reply[];

/** Differences of a metric that takes few values, as those of recall@k. */
function differencesOf(count: number, shift: number, seed: number): number[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, () => Math.round(2 * (random() - 0.5 + shift)) / 2);
}

test('p-values of few questions equal those of scipy.stats.permutation_test', { skip }, async () => {
  const cases = Array.from({ length: 30 }, (_, i) => differencesOf(2 + (i % 12), (i % 5) * 0.15, i));
  for (const [i, { p }] of (await scipy(cases)).entries()) {
    const own = randomisationTest(Float64Array.from(cases[i]!), 1);
    assert.ok(Math.abs(own - p) < 1e-12, `case ${i}: ${own}, not ${p}`);
  }
});

test('p-values and intervals of many questions equal those of scipy but for the draws', { skip }, async () => {
  const cases = [0, 0.02, 0.04, 0.06, 0.1].map((shift, i) => differencesOf(300, shift, 100 + i));
  for (const [i, { p, low, high }] of (await scipy(cases)).entries()) {
    const values = Float64Array.from(cases[i]!);
    const own = randomisationTest(values, 1);
    // Four standard errors of 9,999 draws. The seeds are fixed, so that the result is, too.
    assert.ok(Math.abs(own - p) <= 4 * Math.sqrt((p * (1 - p)) / 9_999) + 2 / 10_000, `case ${i}: ${own}, not ${p}`);
    const interval = bootstrapInterval(values, 1)!;
    for (const end of ['low', 'high'] as const) {
      assert.ok(Math.abs(interval[end] - { low, high }[end]) < 0.06 * (high - low), `case ${i}, ${end}`);
    }
  }
});

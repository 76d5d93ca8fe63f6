import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BatchSize } from '../../src/retrieval/batch-size.ts';
import { seededRandom } from '../helpers/seeded-random.ts';

/** What batches of the learned size come to when a batch of n takes `fixed` + n × `each` milliseconds, give or take a tenth. */
function settle(fixed: number, each: number): BatchSize {
  const size = new BatchSize();
  const random = seededRandom(3);
  for (let i = 0; i < 200; i++) {
    const n = size.queries;
    size.observe(n, (fixed + n * each) * (0.95 + 0.1 * random()));
  }
  return size;
}

test('a batch takes about 25 ms beyond twice a lone search', () => {
  for (const [fixed, each] of [
    [17, 1.15],
    [0.5, 0.2],
    [350, 24],
  ] as const) {
    const { queries } = settle(fixed, each);
    const ms = fixed + queries * each;
    assert.ok(
      ms > 18 && ms < 2.6 * (fixed + each) + 30,
      `${queries} queries in ${ms} ms where one takes ${fixed + each}`,
    );
  }
});

test('batches are never empty and never endless', () => {
  assert.ok(new BatchSize().queries >= 1);
  assert.ok(settle(0, 1e-6).queries <= 1_024);
  assert.ok(settle(0, 1e6).queries >= 1);
  assert.ok(settle(0, 0).queries <= 1_024);
});

test('the expected time is that of as many batches', () => {
  assert.equal(new BatchSize().expectedMs(100), 0);
  const size = settle(10, 1);
  assert.equal(size.expectedMs(0), 0);
  const expected = size.expectedMs(1_000);
  assert.ok(expected > 900 && expected < 2_000, `${expected}`);
});

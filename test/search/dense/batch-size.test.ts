import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BatchSize } from '../../../src/search/dense/batch-size.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';

/** Has learned from 200 batches. A batch of n queries took `fixed` + n × `each` ms, ± 5 %. */
function learned(fixed: number, each: number): BatchSize {
  const size = new BatchSize();
  const random = seededRandom(3);
  for (let i = 0; i < 200; i++) {
    const n = size.queries;
    size.observe(n, (fixed + n * each) * (0.95 + 0.1 * random()));
  }
  return size;
}

test('a batch of the learned size takes about 25 ms more than twice a single search', () => {
  for (const [fixed, each] of [
    [17, 1.15],
    [0.5, 0.2],
    [350, 24],
  ] as const) {
    const { queries } = learned(fixed, each);
    const ms = fixed + queries * each;
    assert.ok(
      ms > 18 && ms < 2.6 * (fixed + each) + 30,
      `${queries} queries in ${ms} ms; one takes ${fixed + each} ms`,
    );
  }
});

test('the batch size stays within its limits', () => {
  assert.ok(new BatchSize().queries >= 1);
  assert.ok(learned(0, 1e-6).queries <= 1_024);
  assert.ok(learned(0, 1e6).queries >= 1);
  assert.ok(learned(0, 0).queries <= 1_024);
});

test('the expected time is the time of the needed batches', () => {
  assert.equal(new BatchSize().expectedMs(100), 0);
  const size = learned(10, 1);
  assert.equal(size.expectedMs(0), 0);
  const expected = size.expectedMs(1_000);
  assert.ok(expected > 900 && expected < 2_000, `${expected}`);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '../../../src/base/random.ts';
import { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import { randomRows } from '../../../training/triage/pool.ts';

function bitmap(rows: number, members: Iterable<number>): RowBitmap {
  const set = new RowBitmap(rows);
  for (const row of members) set.add(row);
  return set;
}

const every = bitmap(
  100,
  Array.from({ length: 100 }, (_, row) => row),
);

test('random rows are as many as asked for, among the rows and outside of the others', () => {
  const rows = bitmap(
    100,
    Array.from({ length: 50 }, (_, i) => 2 * i),
  );
  const except = bitmap(100, [0, 2, 4, 5]);
  for (const count of [0, 1, 30, 47]) {
    const chosen = [...randomRows(rows, except, count, new Random(1, 2, 3))];
    assert.equal(chosen.length, count);
    assert.ok(chosen.every((row) => row % 2 === 0 && row > 4));
  }
  assert.equal(randomRows(rows, except, 1000, new Random(1, 2, 3)).count(), 47);
});

test('every row is chosen with the same probability', () => {
  const counts = new Array<number>(100).fill(0);
  const draws = 4000;
  for (let seed = 0; seed < draws; seed++) {
    for (const row of randomRows(every, new RowBitmap(100), 10, new Random(seed, 5, 6))) counts[row]! += 1;
  }
  // Binomial: 400 are expected with a deviation of 19.
  for (const [row, count] of counts.entries()) assert.ok(Math.abs(count - 400) < 100, `row ${row}: ${count}`);
});

test('equal seeds choose equal rows', () => {
  const choose = (seed: number): number[] => [...randomRows(every, new RowBitmap(100), 10, new Random(seed, 0, 1))];
  assert.deepEqual(choose(3), choose(3));
  assert.notDeepEqual(choose(3), choose(4));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';

test('a bitmap has the added rows and no others', () => {
  const cases = fc
    .integer({ min: 1, max: 70 })
    .chain((rows) => fc.tuple(fc.constant(rows), fc.array(fc.nat(rows - 1))));
  fc.assert(
    fc.property(cases, ([rows, added]) => {
      const bitmap = new RowBitmap(rows);
      for (const row of added) bitmap.add(row);
      const found = Array.from({ length: rows }, (_, row) => row).filter((row) => bitmap.has(row));
      assert.deepEqual(
        found,
        [...new Set(added)].sort((a, b) => a - b),
      );
    }),
  );
});

test('adding, deleting, counting, listing, the next row, complement and intersection are those of a set', () => {
  const cases = fc
    .integer({ min: 1, max: 70 })
    .chain((rows) => fc.tuple(fc.constant(rows), fc.array(fc.tuple(fc.boolean(), fc.nat(rows - 1)))));
  fc.assert(
    fc.property(cases, ([rows, changes]) => {
      const bitmap = new RowBitmap(rows);
      const set = new Set<number>();
      for (const [adds, row] of changes) {
        if (adds) bitmap.add(row);
        else bitmap.delete(row);
        if (adds) set.add(row);
        else set.delete(row);
      }
      const sorted = [...set].sort((a, b) => a - b);
      assert.deepEqual([bitmap.count(), [...bitmap]], [set.size, sorted]);
      const nexts = Array.from({ length: rows + 2 }, (_, from) => sorted.find((row) => row >= from));
      assert.deepEqual(
        nexts.map((_, from) => bitmap.next(from)),
        nexts,
      );
      const others = Array.from({ length: rows }, (_, row) => row).filter((row) => !set.has(row));
      const complement = bitmap.complement();
      assert.deepEqual([complement.count(), [...complement]], [others.length, others]);
      assert.deepEqual(complement.complement().bytes, bitmap.bytes);
      assert.equal(bitmap.intersection(complement).count(), 0);
      assert.deepEqual(bitmap.intersection(bitmap).bytes, bitmap.bytes);
    }),
  );
});

test('row r is bit r % 8 of byte r / 8', () => {
  const bitmap = new RowBitmap(20);
  for (const row of [0, 9, 19]) bitmap.add(row);
  assert.deepEqual([...bitmap.bytes], [0b1, 0b10, 0b1000]);
});

test('bytes of another length and rows out of range are refused', () => {
  assert.throws(() => new RowBitmap(9, new Uint8Array(1)), /9 rows has 2 bytes, not 1/);
  assert.throws(() => new RowBitmap(8, new Uint8Array(2)), RangeError);
  const bitmap = new RowBitmap(9);
  for (const row of [-1, 9, Number.NaN]) {
    assert.throws(() => bitmap.add(row), RangeError);
    assert.throws(() => bitmap.delete(row), RangeError);
  }
  assert.deepEqual([...bitmap.bytes], [0, 0]);
  assert.equal(bitmap.has(1000), false);
});

test('a bitmap works beyond 2^31 rows', () => {
  const rows = 2 ** 31 + 16;
  const bitmap = new RowBitmap(rows);
  bitmap.add(rows - 1);
  assert.deepEqual([bitmap.has(rows - 1), bitmap.has(rows - 2), bitmap.has(15)], [true, false, false]);
  bitmap.add(3);
  assert.deepEqual([...bitmap], [3, rows - 1]);
});

test('a slice has the rows of a range, and the sets one after the other are sliced into themselves', () => {
  const set = fc
    .nat(40)
    .chain((rows) => fc.tuple(fc.constant(rows), rows === 0 ? fc.constant([]) : fc.array(fc.nat(rows - 1))));
  fc.assert(
    fc.property(fc.array(set, { maxLength: 5 }), fc.nat(60), fc.nat(60), (cases, first, length) => {
      const sets = cases.map(([rows, added]) => {
        const bitmap = new RowBitmap(rows);
        for (const row of added) bitmap.add(row);
        return bitmap;
      });
      const joined = RowBitmap.concat(sets);
      let offset = 0;
      const rows = sets.flatMap((bitmap) => {
        const own = [...bitmap].map((row) => offset + row);
        offset += bitmap.rows;
        return own;
      });
      assert.deepEqual([joined.rows, [...joined]], [offset, rows]);
      const part = joined.slice(first, length);
      const expected = rows.filter((row) => row >= first && row < first + length).map((row) => row - first);
      assert.deepEqual([part.rows, part.count(), [...part]], [length, expected.length, expected]);
    }),
  );
});

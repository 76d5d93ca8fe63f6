import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { narrowToFloat16, widenBfloat16, widenFloat16 } from '../../../src/base/system/float16.ts';

const ALL_HALVES = Uint16Array.from({ length: 65536 }, (_, bits) => bits);
const WIDE = widenFloat16(ALL_HALVES);

test('every float16 is the same after widening to float32 and narrowing again; a NaN stays a NaN', () => {
  const back = narrowToFloat16(WIDE);
  for (let bits = 0; bits < 65536; bits++) {
    if (Number.isNaN(WIDE[bits])) assert.ok((back[bits]! & 0x7c00) === 0x7c00 && (back[bits]! & 0x3ff) !== 0);
    else assert.equal(back[bits], bits);
  }
});

test('zeros, subnormals, extremes and infinities have the values of IEEE 754', () => {
  const at = (bits: number) => WIDE[bits];
  assert.deepEqual(
    [at(0x0000), at(0x0001), at(0x03ff), at(0x0400), at(0x3c00), at(0xc000), at(0x7bff), at(0x7c00), at(0xfc00)],
    [0, 2 ** -24, 1023 * 2 ** -24, 2 ** -14, 1, -2, 65504, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
  assert.ok(Object.is(at(0x8000), -0));
});

test('a float32 is rounded to the nearest float16, ties to even', () => {
  fc.assert(
    fc.property(fc.float({ noNaN: true, min: -65519, max: 65519 }), (value) => {
      const exact = Math.fround(value);
      const bits = narrowToFloat16(Float32Array.of(exact))[0]!;
      const error = Math.abs(WIDE[bits]! - exact);
      for (const other of [bits - 1, bits + 1]) {
        const neighbour = WIDE[other & 0xffff]!;
        if (!Number.isFinite(neighbour) || (other & 0x8000) !== (bits & 0x8000)) continue;
        const distance = Math.abs(neighbour - exact);
        assert.ok(error < distance || (error === distance && bits % 2 === 0), `${exact} became ${WIDE[bits]}`);
      }
      assert.equal(bits >>> 15, Object.is(exact, -0) || exact < 0 ? 1 : 0);
    }),
    { numRuns: 3000 },
  );
  const middles = Float32Array.from({ length: 31743 }, (_, i) => (WIDE[i]! + WIDE[i + 1]!) / 2);
  narrowToFloat16(middles).forEach((bits, i) => {
    assert.equal(bits, i % 2 === 0 ? i : i + 1);
  });
});

test('values beyond the range of float16 become infinity, and NaN stays NaN', () => {
  const bits = narrowToFloat16(Float32Array.of(65519.996, 65520, -1e30, Number.POSITIVE_INFINITY, Number.NaN));
  assert.deepEqual([...bits.subarray(0, 4)], [0x7bff, 0x7c00, 0xfc00, 0x7c00]);
  assert.ok(Number.isNaN(widenFloat16(bits)[4]));
});

test('a bfloat16 is widened as the upper half of a float32', () => {
  assert.deepEqual([...widenBfloat16(Uint16Array.of(0x3f80, 0xc000, 0x3e20, 0x0001))], [1, -2, 0.15625, 2 ** -133]);
});

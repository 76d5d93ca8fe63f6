import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeFloat16, narrowToFloat16, widenBfloat16, widenFloat16 } from '../../../src/base/system/float16.ts';

const ALL_HALVES = Uint16Array.from({ length: 65536 }, (_, bits) => bits);
const WIDE = widenFloat16(ALL_HALVES);

/** The bits of the float32 with the same value, computed with integers only. */
function float32Bits(half: number): number {
  const sign = (half & 0x8000) << 16;
  let exponent = (half >> 10) & 0x1f;
  let fraction = half & 0x3ff;
  if (exponent === 31) return (sign | 0x7f800000 | (fraction << 13)) >>> 0;
  if (exponent === 0) {
    if (fraction === 0) return sign >>> 0;
    exponent = 1;
    while ((fraction & 0x400) === 0) {
      fraction <<= 1;
      exponent--;
    }
    fraction &= 0x3ff;
  }
  return (sign | ((exponent + 112) << 23) | (fraction << 13)) >>> 0;
}

test('each of the 65,536 float16 becomes the float32 with the same value, bit for bit', () => {
  const decoded = new Float32Array(65_536);
  decodeFloat16(new Uint8Array(ALL_HALVES.buffer), decoded, 65_536);
  for (const [half, bits] of new Uint32Array(decoded.buffer).entries()) {
    assert.ok(Object.is(WIDE[half], decoded[half]), half.toString(16));
    const expected = float32Bits(half);
    if (Number.isNaN(decoded[half])) assert.ok((expected & 0x7f800000) === 0x7f800000 && (expected & 0x7fffff) !== 0);
    else assert.equal(bits, expected, half.toString(16));
  }
});

test('the source may begin at an odd byte, and only the requested number of values is written', () => {
  const bytes = Uint8Array.of(0xff, 0x00, 0x3c, 0x00, 0xc0, 0x00, 0x3c);
  const target = new Float32Array(3).fill(9);
  decodeFloat16(bytes.subarray(1), target, 2);
  assert.deepEqual([...target], [1, -2, 9]);
});

test('every float16 is the same after widening to float32 and narrowing again; a NaN stays a NaN', () => {
  const back = narrowToFloat16(WIDE);
  for (let bits = 0; bits < 65536; bits++) {
    if (Number.isNaN(WIDE[bits])) assert.ok((back[bits]! & 0x7c00) === 0x7c00 && (back[bits]! & 0x3ff) !== 0);
    else assert.equal(back[bits], bits);
  }
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

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeFloat16 } from '../../../src/base/system/float16.ts';

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

function decodeAll(): Float32Array {
  const halves = Uint16Array.from({ length: 65_536 }, (_, bits) => bits);
  const bytes = new Uint8Array(65_536 * 2);
  const view = new DataView(bytes.buffer);
  for (const [i, half] of halves.entries()) view.setUint16(2 * i, half, true);
  const target = new Float32Array(65_536);
  decodeFloat16(bytes, target, 65_536);
  return target;
}

test('decodeFloat16 returns the known values of 14 float16', () => {
  const decoded = decodeAll();
  const known: readonly [number, number][] = [
    [0x0000, 0],
    [0x8000, -0],
    [0x0001, 2 ** -24],
    [0x03ff, 2 ** -14 - 2 ** -24],
    [0x0400, 2 ** -14],
    [0x3555, 0.333251953125],
    [0x3c00, 1],
    [0x3c01, 1 + 2 ** -10],
    [0xc000, -2],
    [0x7bff, 65_504],
    [0xfbff, -65_504],
    [0x7c00, Number.POSITIVE_INFINITY],
    [0xfc00, Number.NEGATIVE_INFINITY],
    [0x7e00, Number.NaN],
  ];
  for (const [bits, value] of known)
    assert.ok(Object.is(decoded[bits], value), `${bits.toString(16)}: ${decoded[bits]}`);
});

test('each of the 65,536 float16 becomes the float32 with the same value, bit for bit', () => {
  const decoded = decodeAll();
  const bits = new Uint32Array(decoded.buffer);
  for (let half = 0; half < 65_536; half++) {
    const expected = float32Bits(half);
    if (Number.isNaN(decoded[half])) assert.ok((expected & 0x7f800000) === 0x7f800000 && (expected & 0x7fffff) !== 0);
    else assert.equal(bits[half], expected, half.toString(16));
  }
});

test('the source may begin at an odd byte, and only the requested number of values is written', () => {
  const bytes = Uint8Array.of(0xff, 0x00, 0x3c, 0x00, 0xc0, 0x00, 0x3c);
  const target = new Float32Array(3).fill(9);
  decodeFloat16(bytes.subarray(1), target, 2);
  assert.deepEqual([...target], [1, -2, 9]);
});

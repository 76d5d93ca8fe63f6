/** Conversions between float32 and the 16-bit formats of checkpoints and vector files. 16-bit values are bit patterns. */

/** The float32 value of every float16 bit pattern (IEEE 754 binary16). Widening is exact. */
const FLOAT32_OF_FLOAT16 = makeTable();

/** Widens float16 to float32. Exact. */
export function widenFloat16(source: Uint16Array): Float32Array<ArrayBuffer> {
  const result = new Float32Array(source.length);
  for (let i = 0; i < source.length; i++) result[i] = FLOAT32_OF_FLOAT16[source[i]!]!;
  return result;
}

/** Widens the first `count` little-endian float16 values of `source`, at any alignment, into `target`. Exact. */
export function decodeFloat16(source: Uint8Array, target: Float32Array, count: number): void {
  for (let i = 0; i < count; i++) target[i] = FLOAT32_OF_FLOAT16[source[2 * i]! | (source[2 * i + 1]! << 8)]!;
}

/** Widens bfloat16, which is the upper half of a float32. Exact. */
export function widenBfloat16(source: Uint16Array): Float32Array<ArrayBuffer> {
  const bits = new Uint32Array(source.length);
  for (let i = 0; i < source.length; i++) bits[i] = source[i]! << 16;
  return new Float32Array(bits.buffer);
}

/** Rounds to the nearest float16, ties to even. Magnitudes from 65520 become infinity. */
export function narrowToFloat16(source: Float32Array): Uint16Array<ArrayBuffer> {
  const bits = new Uint32Array(source.buffer, source.byteOffset, source.length);
  const result = new Uint16Array(source.length);
  for (let i = 0; i < source.length; i++) result[i] = narrowBits(bits[i]!);
  return result;
}

/** Rounds float32 bits to float16 bits. */
function narrowBits(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const exponent = (bits >>> 23) & 0xff;
  const fraction = bits & 0x7fffff;
  if (exponent === 0xff) return sign | 0x7c00 | (fraction === 0 ? 0 : 0x200 | (fraction >>> 13));
  const float16Exponent = exponent - 112;
  if (float16Exponent >= 31) return sign | 0x7c00;
  // Anything below half the smallest float16 subnormal (2^-24) rounds to zero.
  if (float16Exponent < -10) return sign;
  const significand = fraction | 0x800000;
  // A carry out of the fraction increments the exponent, which is correct when rounding up to a power of two.
  return float16Exponent >= 1
    ? sign | (((float16Exponent - 1) << 10) + shiftToEven(significand, 13))
    : sign | shiftToEven(significand, 14 - float16Exponent);
}

function shiftToEven(value: number, shift: number): number {
  const kept = value >>> shift;
  const dropped = value & ((1 << shift) - 1);
  const half = 1 << (shift - 1);
  return dropped > half || (dropped === half && (kept & 1) === 1) ? kept + 1 : kept;
}

function makeTable(): Float32Array {
  const bits = new Uint32Array(65_536);
  const table = new Float32Array(bits.buffer);
  for (let half = 0; half < 65_536; half++) {
    // The bits of float16, shifted to the place of float32's, stand for a value that is smaller by the difference of the biases.
    bits[half] = (half & 0x7fff) << 13;
    if ((half & 0x7c00) === 0x7c00) bits[half]! |= 0x7f800000;
    else table[half]! *= 2 ** 112;
    bits[half]! |= (half & 0x8000) << 16;
  }
  return table;
}

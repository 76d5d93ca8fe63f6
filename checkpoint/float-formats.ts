/** Conversions between float32 and the two 16-bit formats of checkpoints; values travel as their bit patterns. */

const word = new DataView(new ArrayBuffer(4));

/** The float32 that a float16 (IEEE 754 binary16) stands for; exact. */
export function float16ToFloat32(bits: number): number {
  return float16Table()[bits]!;
}

/** bfloat16 is the upper half of a float32; exact. */
export function widenBfloat16(source: Uint16Array): Float32Array<ArrayBuffer> {
  const bits = new Uint32Array(source.length);
  for (let i = 0; i < source.length; i++) bits[i] = source[i]! << 16;
  return new Float32Array(bits.buffer);
}

/** Exact. */
export function widenFloat16(source: Uint16Array): Float32Array<ArrayBuffer> {
  const table = float16Table();
  const result = new Float32Array(source.length);
  for (let i = 0; i < source.length; i++) result[i] = table[source[i]!]!;
  return result;
}

/** To the nearest float16, ties to even; beyond 65519 that is infinity. */
export function narrowToFloat16(source: Float32Array): Uint16Array<ArrayBuffer> {
  const bits = new Uint32Array(source.buffer, source.byteOffset, source.length);
  const result = new Uint16Array(source.length);
  for (let i = 0; i < source.length; i++) result[i] = roundToFloat16(bits[i]!);
  return result;
}

/** To the nearest float16, ties to even, of a float32 given by its bits. */
function roundToFloat16(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const exponent = (bits >>> 23) & 0xff;
  const fraction = bits & 0x7fffff;
  if (exponent === 0xff) return sign | 0x7c00 | (fraction === 0 ? 0 : 0x200 | (fraction >>> 13));
  const half = exponent - 112;
  if (half >= 31) return sign | 0x7c00;
  // Of a number below 2^-24/2 nothing is left; float32's own subnormals are far below.
  if (half < -10) return sign;
  const significand = fraction | 0x800000;
  // A carry out of the fraction runs into the exponent, which is what rounding up to a power of two means.
  return half >= 1
    ? sign | (((half - 1) << 10) + shiftToEven(significand, 13))
    : sign | shiftToEven(significand, 14 - half);
}

function shiftToEven(value: number, shift: number): number {
  const kept = value >>> shift;
  const rest = value & ((1 << shift) - 1);
  const middle = 1 << (shift - 1);
  return rest > middle || (rest === middle && (kept & 1) === 1) ? kept + 1 : kept;
}

let table: Float32Array | null = null;

function float16Table(): Float32Array {
  if (table !== null) return table;
  table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) table[bits] = decodeFloat16(bits);
  return table;
}

function decodeFloat16(bits: number): number {
  const exponent = (bits >>> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) {
    word.setUint32(0, ((bits & 0x8000) << 16) | 0x7f800000 | (fraction << 13));
    return word.getFloat32(0);
  }
  const magnitude = exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25);
  return (bits & 0x8000) === 0 ? magnitude : -magnitude;
}

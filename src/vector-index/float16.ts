/** Every float16 as the float32 of equal value, by its bits (IEEE 754 binary16; widening is exact). */
const FLOAT32_OF_FLOAT16: Float32Array = makeTable();

/** Widens `count` little-endian float16 in `source` (from byte 0, any alignment) into `target`. */
export function decodeFloat16(source: Uint8Array, target: Float32Array, count: number): void {
  for (let i = 0; i < count; i++) target[i] = FLOAT32_OF_FLOAT16[source[2 * i]! | (source[2 * i + 1]! << 8)]!;
}

function makeTable(): Float32Array {
  const table = new Float32Array(65_536);
  for (let bits = 0; bits < 65_536; bits++) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 0x1f;
    const fraction = bits & 0x3ff;
    if (exponent === 0) table[bits] = sign * fraction * 2 ** -24;
    else if (exponent === 31) table[bits] = fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
    else table[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return table;
}

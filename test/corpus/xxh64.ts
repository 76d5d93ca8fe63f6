const MASK = (1n << 64n) - 1n;
const [P1, P2, P3, P4, P5] = [
  0x9e3779b185ebca87n,
  0xc2b2ae3d27d4eb4fn,
  0x165667b19e3779f9n,
  0x85ebca77c2b2ae63n,
  0x27d4eb2f165667c5n,
] as const;

/** XXH64 with seed 0, after doc/xxhash_spec.md of Cyan4973/xxHash. Slow, for tests only. */
export function xxh64(bytes: Buffer): bigint {
  let at = 0;
  let hash: bigint;
  if (bytes.length >= 32) {
    const lanes = [(P1 + P2) & MASK, P2, 0n, (0n - P1) & MASK];
    for (; at + 32 <= bytes.length; at += 32) {
      for (let lane = 0; lane < 4; lane++) lanes[lane] = round(lanes[lane]!, bytes.readBigUInt64LE(at + 8 * lane));
    }
    hash = [1n, 7n, 12n, 18n].reduce((sum, bits, lane) => sum + rotate(lanes[lane]!, bits), 0n) & MASK;
    for (const lane of lanes) hash = (((hash ^ round(0n, lane)) * P1) & MASK) + P4;
  } else {
    hash = P5;
  }
  hash = (hash + BigInt(bytes.length)) & MASK;
  for (; at + 8 <= bytes.length; at += 8) {
    hash = (rotate(hash ^ round(0n, bytes.readBigUInt64LE(at)), 27n) * P1 + P4) & MASK;
  }
  for (; at + 4 <= bytes.length; at += 4) {
    hash = (rotate(hash ^ ((BigInt(bytes.readUInt32LE(at)) * P1) & MASK), 23n) * P2 + P3) & MASK;
  }
  for (; at < bytes.length; at++) hash = (rotate(hash ^ ((BigInt(bytes[at]!) * P5) & MASK), 11n) * P1) & MASK;
  hash = ((hash ^ (hash >> 33n)) * P2) & MASK;
  hash = ((hash ^ (hash >> 29n)) * P3) & MASK;
  return hash ^ (hash >> 32n);
}

function round(lane: bigint, input: bigint): bigint {
  return (rotate((lane + input * P2) & MASK, 31n) * P1) & MASK;
}

function rotate(value: bigint, bits: bigint): bigint {
  const wrapped = value & MASK;
  return ((wrapped << bits) | (wrapped >> (64n - bits))) & MASK;
}

const PRIME_1 = 0x9e3779b185ebca87n;
const PRIME_2 = 0xc2b2ae3d27d4eb4fn;
const PIECE_BYTES = 1 << 20;

/** The 64-bit checksum of native/src/base/checksum.hpp. */
export function checksum64(bytes: Uint8Array, seed = 0n): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let [a, b, c, d] = [u64(seed + PRIME_1), seed ^ PRIME_2, u64(seed + 1n), u64(seed - PRIME_1)];
  let at = 0;
  for (; bytes.length - at >= 32; at += 32) {
    a = chained(a, view.getBigUint64(at, true));
    b = chained(b, view.getBigUint64(at + 8, true));
    c = chained(c, view.getBigUint64(at + 16, true));
    d = chained(d, view.getBigUint64(at + 24, true));
  }
  let sum = u64(BigInt(bytes.length) * PRIME_1);
  for (const lane of [a, b, c, d]) sum = u64(rotated(sum ^ lane, 27n) * PRIME_1 + PRIME_2);
  for (; at < bytes.length; at++) sum = u64(rotated(sum ^ u64(BigInt(bytes[at]!) * PRIME_2), 11n) * PRIME_1);
  sum = u64((sum ^ (sum >> 33n)) * PRIME_2);
  return sum ^ (sum >> 29n);
}

function chained(lane: bigint, word: bigint): bigint {
  return u64(rotated(u64(lane + u64(word * PRIME_2)), 31n) * PRIME_1);
}

function rotated(value: bigint, bits: bigint): bigint {
  return u64(value << bits) | (value >> (64n - bits));
}

function u64(value: bigint): bigint {
  return BigInt.asUintN(64, value);
}

/** The checksum of a section: of each mebibyte, with the checksum of the one before it as its seed. */
export class SectionChecksum {
  readonly #piece = new Uint8Array(PIECE_BYTES);
  #filled = 0;
  #sum = 0n;

  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const taken = Math.min(bytes.length - at, PIECE_BYTES - this.#filled);
      this.#piece.set(bytes.subarray(at, at + taken), this.#filled);
      this.#filled += taken;
      at += taken;
      if (this.#filled === PIECE_BYTES) this.#flush();
    }
  }

  finish(): bigint {
    if (this.#filled > 0) this.#flush();
    return this.#sum;
  }

  #flush(): void {
    this.#sum = checksum64(this.#piece.subarray(0, this.#filled), this.#sum);
    this.#filled = 0;
  }
}

/** Blocks of postings in a `.bm25` file: native/src/lexical/posting_block.hpp describes them. */

/** Postings of a full block. */
export const BLOCK_POSTINGS = 128;
/** Values in the header of a block that say that another byte follows. */
const LONG_BLOCK_HEADER = 3;
const MANY_EXCEPTIONS = 7;

/** The postings of one block or list. */
export interface Postings {
  readonly rows: Uint32Array;
  readonly tfs: Uint32Array;
}

export interface Position {
  readonly bytes: Uint8Array;
  offset: number;
}

/**
 * Decodes a block of up to 128 postings. The gaps between rows share one bit width, and so do the values tf − 1; larger values of
 * tf − 1 are exceptions.
 *
 * @param previousRow last row of the block before; −1 for the first block of a list.
 * @returns undefined if the bytes are not a valid block.
 */
export function decodeBlock(bytes: Uint8Array, count: number, previousRow: number): Postings | undefined {
  const header = readHeader(bytes);
  if (header === undefined || header.gapBits > 32) return undefined;
  const { gapBits, tfBits, exceptions } = header;
  const gapsEnd = header.bytes + packedBytes(count, gapBits);
  const tfsEnd = gapsEnd + packedBytes(count, tfBits);
  if (bytes.length < tfsEnd) return undefined;
  const rows = unpack(bytes.subarray(header.bytes, gapsEnd), count, gapBits);
  const tfs = unpack(bytes.subarray(gapsEnd, tfsEnd), count, tfBits);
  const at = { bytes, offset: tfsEnd };
  for (let i = 0; i < exceptions; i++) {
    const index = bytes[at.offset++];
    const high = readVarint(at);
    if (index === undefined || index >= count || high === undefined) return undefined;
    tfs[index]! += high * 2 ** tfBits;
  }
  let row = previousRow;
  for (let i = 0; i < count; i++) {
    row += rows[i]! + 1;
    if (row > 0xffff_ffff) return undefined;
    rows[i] = row;
    tfs[i]!++;
  }
  return { rows, tfs };
}

/** Appends a block of 1 to 128 postings with rising rows, which `decodeBlock` reads. */
export function encodeBlock({ rows, tfs }: Postings, previousRow: number, bytes: ByteBuffer): void {
  const gaps = rows.map((row, i) => row - (i === 0 ? previousRow : rows[i - 1]!) - 1);
  const above = tfs.map((tf) => tf - 1);
  const gapBits = 32 - Math.clz32(gaps.reduce((all, gap) => (all | gap) >>> 0, 0));
  const tfBits = bestWidth(above);
  const exceptions = [...above.keys()].filter((i) => above[i]! >= 2 ** tfBits);
  const size = headerBytes(tfBits, exceptions.length);
  bytes.byte(gapBits | ((size === 1 ? tfBits : LONG_BLOCK_HEADER) << 6));
  if (size > 1) bytes.byte(tfBits | (Math.min(exceptions.length, MANY_EXCEPTIONS) << 5));
  if (size > 2) bytes.byte(exceptions.length);
  bytes.append(pack(gaps, gapBits));
  bytes.append(pack(above, tfBits));
  for (const i of exceptions) {
    bytes.byte(i);
    bytes.varint(Math.floor(above[i]! / 2 ** tfBits));
  }
}

/** Reads an unsigned integer in groups of seven bits, low group first. Undefined at the end of the bytes or above 2^53. */
export function readVarint(at: Position): number | undefined {
  let value = 0;
  for (let factor = 1; factor <= 2 ** 49; factor *= 128) {
    const byte = at.bytes[at.offset++];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return value;
  }
  return undefined;
}

/** Bytes that grow at the end. */
export class ByteBuffer {
  #bytes = new Uint8Array(1024);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The bytes; valid until the next change. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  byte(value: number): void {
    this.#makeRoom(1);
    this.#bytes[this.#length++] = value;
  }

  append(bytes: ArrayLike<number>): void {
    this.#makeRoom(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** Appends an unsigned integer up to 2^53, as `readVarint` reads it. */
  varint(value: number): void {
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.byte((rest % 0x80) + 0x80);
    this.byte(rest);
  }

  uint32(value: number): void {
    for (let shift = 0; shift < 32; shift += 8) this.byte((value >>> shift) & 0xff);
  }

  #makeRoom(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(this.#length + count, 2 * this.#bytes.length));
    larger.set(this.bytes);
    this.#bytes = larger;
  }
}

/** The widths and the number of exceptions of a block, and the bytes that hold them. */
function readHeader(bytes: Uint8Array) {
  const [first, second, third] = bytes;
  if (first === undefined) return undefined;
  const gapBits = first & 63;
  if (first >> 6 !== LONG_BLOCK_HEADER) return { gapBits, tfBits: first >> 6, exceptions: 0, bytes: 1 };
  if (second === undefined) return undefined;
  const tfBits = second & 31;
  if (second >> 5 !== MANY_EXCEPTIONS) return { gapBits, tfBits, exceptions: second >> 5, bytes: 2 };
  return third === undefined ? undefined : { gapBits, tfBits, exceptions: third, bytes: 3 };
}

function headerBytes(tfBits: number, exceptions: number): number {
  if (tfBits < LONG_BLOCK_HEADER && exceptions === 0) return 1;
  return exceptions < MANY_EXCEPTIONS ? 2 : 3;
}

/** The narrowest of the widths of tf − 1 that need the fewest bytes. An exception counts as two. */
function bestWidth(values: Uint32Array): number {
  let best = 31;
  let bestBytes = Number.POSITIVE_INFINITY;
  for (let bits = 31; bits >= 0; bits--) {
    const exceptions = values.reduce((count, value) => count + Number(value >= 2 ** bits), 0);
    const bytes = headerBytes(bits, exceptions) + packedBytes(values.length, bits) + 2 * exceptions;
    if (bytes <= bestBytes) [best, bestBytes] = [bits, bytes];
  }
  return best;
}

/** Bytes of `count` packed values. */
function packedBytes(count: number, bits: number): number {
  return count === BLOCK_POSTINGS ? 16 * bits : Math.ceil((count * bits) / 8);
}

/** The place of a bit of packed value `index`. A full block has four lanes, value i in lane i % 4, that alternate in words. */
function valueBit(index: number, bit: number, bits: number, full: boolean): number {
  if (!full) return index * bits + bit;
  const inLane = Math.floor(index / 4) * bits + bit;
  return 128 * Math.floor(inLane / 32) + 32 * (index % 4) + (inLane % 32);
}

/** The low `bits` bits of each value. */
function pack(values: Uint32Array, bits: number): Uint8Array {
  const bytes = new Uint8Array(packedBytes(values.length, bits));
  const full = values.length === BLOCK_POSTINGS;
  for (const [i, value] of values.entries()) {
    for (let bit = 0; bit < bits; bit++) {
      const at = valueBit(i, bit, bits, full);
      bytes[at >> 3]! |= ((value >>> bit) & 1) << (at & 7);
    }
  }
  return bytes;
}

function unpack(bytes: Uint8Array, count: number, bits: number): Uint32Array {
  const values = new Uint32Array(count);
  const full = count === BLOCK_POSTINGS;
  for (let i = 0; i < count; i++) {
    let value = 0;
    for (let bit = 0; bit < bits; bit++) {
      const at = valueBit(i, bit, bits, full);
      if ((bytes[at >> 3]! >> (at & 7)) & 1) value += 2 ** bit;
    }
    values[i] = value;
  }
  return values;
}

import type { ByteBuffer } from './byte-buffer.ts';
import { BLOCK_POSTINGS, LONG_BLOCK_HEADER, MANY_EXCEPTIONS, packedBytes, valueBit } from './lexical-format.ts';
import type { Postings } from './posting-block.ts';

/**
 * Appends a block of 1 to 128 postings with rising rows; `decodeBlock` reads it.
 *
 * @param previousRow last row of the block before; −1 for the first block of a list.
 */
export function encodeBlock({ rows, tfs }: Postings, previousRow: number, bytes: ByteBuffer): void {
  const gaps = rows.map((row, i) => row - (i === 0 ? previousRow : rows[i - 1]!) - 1);
  const above = tfs.map((tf) => tf - 1);
  const gapBits = bitWidth(gaps.reduce((all, gap) => (all | gap) >>> 0, 0));
  const tfBits = bestWidth(above);
  const exceptions = [...above.keys()].filter((i) => above[i]! >= 2 ** tfBits);
  appendHeader(gapBits, tfBits, exceptions.length, bytes);
  bytes.append(packed(gaps, gapBits));
  bytes.append(packed(above, tfBits));
  for (const i of exceptions) {
    bytes.byte(i);
    bytes.varint(Math.floor(above[i]! / 2 ** tfBits));
  }
}

function appendHeader(gapBits: number, tfBits: number, exceptions: number, bytes: ByteBuffer): void {
  const size = headerBytes(tfBits, exceptions);
  bytes.byte(gapBits | ((size === 1 ? tfBits : LONG_BLOCK_HEADER) << 6));
  if (size > 1) bytes.byte(tfBits | (Math.min(exceptions, MANY_EXCEPTIONS) << 5));
  if (size > 2) bytes.byte(exceptions);
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

function bitWidth(value: number): number {
  return 32 - Math.clz32(value);
}

/** The low `bits` bits of each value. */
function packed(values: Uint32Array, bits: number): Uint8Array {
  const bytes = new Uint8Array(packedBytes(values.length, bits));
  const full = values.length === BLOCK_POSTINGS;
  for (const [i, value] of values.entries()) {
    for (let bit = 0; bit < bits; bit++) {
      if (((value >>> bit) & 1) === 0) continue;
      const at = valueBit(i, bit, bits, full);
      bytes[at >> 3]! |= 1 << (at & 7);
    }
  }
  return bytes;
}

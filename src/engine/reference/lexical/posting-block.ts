import { BLOCK_POSTINGS, LONG_BLOCK_HEADER, MANY_EXCEPTIONS, packedBytes, valueBit } from './lexical-format.ts';

/** The decoded postings of one block. */
export interface Postings {
  readonly rows: Uint32Array;
  readonly tfs: Uint32Array;
}

/**
 * Decodes a block of up to 128 postings. The gaps between rows share one bit width, and so do the values tf − 1; larger
 * values of tf − 1 are exceptions. See native/src/lexical/posting_block.hpp.
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
    tfs[index] = tfs[index]! + high * 2 ** tfBits;
  }
  let row = previousRow;
  for (let i = 0; i < count; i++) {
    row += rows[i]! + 1;
    if (row > 0xffff_ffff) return undefined;
    rows[i] = row;
    tfs[i] = tfs[i]! + 1;
  }
  return { rows, tfs };
}

export interface Position {
  readonly bytes: Uint8Array;
  offset: number;
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

function unpack(bytes: Uint8Array, count: number, bits: number): Uint32Array {
  const values = new Uint32Array(count);
  if (bits === 0) return values;
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

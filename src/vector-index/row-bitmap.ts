/**
 * A set of row numbers, one bit a row: bit `row % 8` of byte `floor(row / 8)`. Up to 2^35 rows (4 GiB of bits).
 */
export class RowBitmap {
  readonly rows: number;
  readonly bytes: Uint8Array;

  constructor(rows: number, bytes: Uint8Array = new Uint8Array(Math.ceil(rows / 8))) {
    if (bytes.length !== Math.ceil(rows / 8)) {
      throw new RangeError(`A bitmap of ${rows} rows has ${Math.ceil(rows / 8)} bytes, not ${bytes.length}.`);
    }
    this.rows = rows;
    this.bytes = bytes;
  }

  has(row: number): boolean {
    return ((this.bytes[Math.floor(row / 8)] ?? 0) & (1 << (row % 8))) !== 0;
  }

  /** How many rows are in the set. */
  count(): number {
    let count = 0;
    for (const [index, byte] of this.bytes.entries()) {
      const beyond = Math.max(0, 8 * (index + 1) - this.rows);
      for (let bits = byte & (0xff >> beyond); bits !== 0; bits &= bits - 1) count++;
    }
    return count;
  }

  add(row: number): void {
    if (!(row >= 0 && row < this.rows)) throw new RangeError(`Row ${row} is not in [0, ${this.rows}).`);
    const index = Math.floor(row / 8);
    this.bytes[index] = this.bytes[index]! | (1 << (row % 8));
  }
}

/** The rows in both bitmaps, where an absent one holds all rows; absent when both are. */
export function intersect(a: RowBitmap | undefined, b: RowBitmap | undefined, rows: number): Uint8Array | undefined {
  for (const bitmap of [a, b]) {
    if (bitmap !== undefined && bitmap.rows !== rows) {
      throw new RangeError(`The filter covers ${bitmap.rows} rows, the index has ${rows}.`);
    }
  }
  const bitmaps = [a, b].filter((bitmap) => bitmap !== undefined);
  if (bitmaps.length === 0) return undefined;
  const bytes = new Uint8Array(bitmaps[0]!.bytes.length).fill(0xff);
  for (const bitmap of bitmaps) for (let i = 0; i < bytes.length; i++) bytes[i] = bytes[i]! & bitmap.bytes[i]!;
  return bytes;
}

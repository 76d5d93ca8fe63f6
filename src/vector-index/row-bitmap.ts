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

  add(row: number): void {
    if (!(row >= 0 && row < this.rows)) throw new RangeError(`Row ${row} is not in [0, ${this.rows}).`);
    const index = Math.floor(row / 8);
    this.bytes[index] = this.bytes[index]! | (1 << (row % 8));
  }
}

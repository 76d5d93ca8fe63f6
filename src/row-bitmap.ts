/** A set of row numbers: bit `row % 8` of byte `floor(row / 8)`. Up to 2^35 rows (4 GiB). */
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

  /** Number of rows in the set. */
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

  delete(row: number): void {
    if (!(row >= 0 && row < this.rows)) throw new RangeError(`Row ${row} is not in [0, ${this.rows}).`);
    const index = Math.floor(row / 8);
    this.bytes[index] = this.bytes[index]! & ~(1 << (row % 8));
  }

  /** The rows in the set, ascending. */
  *[Symbol.iterator](): Generator<number, void> {
    for (let at = 0; at < this.bytes.length; at++) {
      for (let byte = this.bytes[at]!; byte !== 0; byte &= byte - 1) yield at * 8 + 31 - Math.clz32(byte & -byte);
    }
  }

  /** The rows of `[0, rows)` that are not in the set. */
  complement(): RowBitmap {
    const bytes = Uint8Array.from(this.bytes, (byte) => ~byte & 0xff);
    if (this.rows % 8 !== 0) bytes[bytes.length - 1]! &= (1 << (this.rows % 8)) - 1;
    return new RowBitmap(this.rows, bytes);
  }

  /** The rows in both sets. `other` must have the same number of rows. */
  intersection(other: RowBitmap): RowBitmap {
    if (other.rows !== this.rows)
      throw new RangeError(`The bitmaps have ${other.rows} and ${this.rows} rows; they must have the same number.`);
    return new RowBitmap(
      this.rows,
      Uint8Array.from(this.bytes, (byte, i) => byte & other.bytes[i]!),
    );
  }
}

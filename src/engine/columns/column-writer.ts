import { open } from 'node:fs/promises';
import { TrawlError } from '../../base/errors.ts';
import { writeAt } from '../../base/system/durable-file.ts';
import type { Column, StoredValue } from '../filter/column.ts';
import { doubled } from '../typed-arrays.ts';
import { type ColumnHeader, encodeColumnHeader, layOut, NO_VALUE } from './column-file.ts';

/** Map, which finds the code of a text, has at most 2^24 entries. */
const MAX_DISTINCT = 2 ** 24 - 1;
/** The starts of rows with several values have 32 bits. */
const MAX_VALUES = 2 ** 32 - 1;

/** Collects the values of a column, row by row, and writes its file. It needs about as much memory as the file has bytes. */
export class ColumnWriter {
  readonly #column: Column;
  readonly #codes = new Map<string, number>();
  /** Codes in the order of their first appearance, or float64 values. */
  #values = new Float64Array(1024);
  #count = 0;
  #starts = new Uint32Array(1025);
  #rows = 0;
  #multiple = false;

  constructor(column: Column) {
    this.#column = column;
  }

  /** Adds the values of the next row. @throws TrawlError CONFIG_INVALID if the shard has too many values. */
  append(values: readonly StoredValue[]): void {
    if (values.length > 1) this.#multiple = true;
    if (this.#count + values.length > MAX_VALUES) throw this.#tooMany(`${MAX_VALUES} values`);
    for (const value of values) {
      if (this.#count === this.#values.length) this.#values = doubled(this.#values);
      this.#values[this.#count++] = typeof value === 'string' ? this.#codeOf(value) : value;
    }
    if (++this.#rows === this.#starts.length) this.#starts = doubled(this.#starts);
    this.#starts[this.#rows] = this.#count;
  }

  /** Writes the file and makes it durable. */
  async finish(path: string): Promise<Pick<ColumnHeader, 'values' | 'distinct'>> {
    const texts = [...this.#codes.keys()].map((text) => ({ text, bytes: Buffer.from(text) }));
    texts.sort((a, b) => Buffer.compare(a.bytes, b.bytes));
    const { type } = this.#column;
    const width = type === 'string' ? codeWidth(texts.length) : type === 'boolean' ? 1 : 8;
    const [rows, values, distinct, multiple] = [this.#rows, this.#count, texts.length, this.#multiple];
    const textBytes = Buffer.concat(texts.map(({ bytes }) => bytes));
    const header = layOut({ type, rows, values, distinct, width, multiple }, textBytes.length);
    const file = await open(path, 'w');
    const write = ({ buffer, byteOffset, byteLength }: NodeJS.TypedArray, position: number): Promise<void> =>
      writeAt(file, new Uint8Array(buffer, byteOffset, byteLength), position);
    try {
      await write(encodeColumnHeader(header), 0);
      if (multiple) await write(this.#starts.subarray(0, rows + 1), header.starts);
      const ranks = new Uint32Array(distinct);
      for (const [rank, { text }] of texts.entries()) ranks[this.#codes.get(text)!] = rank;
      await write(this.#elements(header, ranks), header.data);
      if (type === 'string') {
        const ends = new BigUint64Array(distinct + 1);
        for (const [i, { bytes }] of texts.entries()) ends[i + 1] = ends[i]! + BigInt(bytes.length);
        await write(ends, header.textStarts);
        await write(textBytes, header.texts);
      }
      // The last section may be empty and begin after the last byte written.
      await file.truncate(header.bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    return { values, distinct };
  }

  #codeOf(text: string): number {
    const known = this.#codes.get(text);
    if (known !== undefined) return known;
    if (this.#codes.size === MAX_DISTINCT) throw this.#tooMany(`${MAX_DISTINCT} different texts`);
    this.#codes.set(text, this.#codes.size);
    return this.#codes.size - 1;
  }

  /** One element for each row, or the values of all rows one after another. `ranks`: the place of each text in order, by its code. */
  #elements({ type, width, multiple }: ColumnHeader, ranks: Uint32Array): NodeJS.TypedArray {
    const elements = new { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: Float64Array }[width](
      multiple ? this.#count : this.#rows,
    );
    if (width === 8 && !multiple) elements.fill(Number.NaN);
    // Code 0 is NO_VALUE, so the codes of texts, and of false and true, begin after it.
    const element = (value: number): number =>
      width === 8 ? value : NO_VALUE + 1 + (type === 'string' ? ranks[value]! : value);
    if (multiple) {
      for (let i = 0; i < this.#count; i++) elements[i] = element(this.#values[i]!);
    } else {
      for (let row = 0; row < this.#rows; row++) {
        const at = this.#starts[row]!;
        if (at < this.#starts[row + 1]!) elements[row] = element(this.#values[at]!);
      }
    }
    return elements;
  }

  #tooMany(what: string): TrawlError {
    return new TrawlError(
      'CONFIG_INVALID',
      `The column ${JSON.stringify(this.#column.name)} has more than ${what} in one shard. Use smaller shards (--shard-rows), or ` +
        'leave the column out.',
    );
  }
}

function codeWidth(distinct: number): 1 | 2 | 4 {
  return distinct <= 0xff ? 1 : distinct <= 0xffff ? 2 : 4;
}

import { open } from 'node:fs/promises';
import { TrawlError } from '../../base/errors.ts';
import type { StoredValue } from '../filter/bind-filter.ts';
import type { Column } from '../filter/column.ts';
import { type ColumnHeader, layOut, NO_VALUE } from './column-format.ts';
import { columnHeaderBytes } from './column-header.ts';

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
      if (this.#count === this.#values.length) this.#values = longer(this.#values, Float64Array);
      this.#values[this.#count++] = typeof value === 'string' ? this.#codeOf(value) : value;
    }
    if (++this.#rows === this.#starts.length) this.#starts = longer(this.#starts, Uint32Array);
    this.#starts[this.#rows] = this.#count;
  }

  /** Writes the file and makes it durable. */
  async finish(path: string): Promise<Pick<ColumnHeader, 'values' | 'distinct'>> {
    const texts = [...this.#codes.keys()].map((text) => ({ text, bytes: Buffer.from(text) }));
    texts.sort((a, b) => Buffer.compare(a.bytes, b.bytes));
    const { type } = this.#column;
    const width = type === 'string' ? codeWidth(texts.length) : type === 'boolean' ? 1 : 8;
    const shape = {
      rows: this.#rows,
      values: this.#count,
      distinct: texts.length,
      width,
      multiple: this.#multiple,
    } as const;
    const textBytes = texts.reduce((sum, { bytes }) => sum + bytes.length, 0);
    const header = layOut({ ...shape, type }, textBytes);
    const file = await open(path, 'w');
    try {
      await writeAt(file, columnHeaderBytes(header), 0);
      if (this.#multiple) await writeAt(file, this.#starts.subarray(0, this.#rows + 1), header.starts);
      await writeAt(
        file,
        this.#data(
          header,
          texts.map(({ text }) => text),
        ),
        header.data,
      );
      if (type === 'string') {
        const ends = new BigUint64Array(texts.length + 1);
        for (const [i, { bytes }] of texts.entries()) ends[i + 1] = ends[i]! + BigInt(bytes.length);
        await writeAt(file, ends, header.textStarts);
        await writeAt(file, Buffer.concat(texts.map(({ bytes }) => bytes)), header.texts);
      }
      // The last section may be empty and begin after the last byte written.
      await file.truncate(header.bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    return { values: this.#count, distinct: texts.length };
  }

  #codeOf(text: string): number {
    const known = this.#codes.get(text);
    if (known !== undefined) return known;
    if (this.#codes.size === MAX_DISTINCT) throw this.#tooMany(`${MAX_DISTINCT} different texts`);
    this.#codes.set(text, this.#codes.size);
    return this.#codes.size - 1;
  }

  /** One element for each row, or the values of all rows one after another. */
  #data({ width, multiple }: ColumnHeader, sorted: readonly string[]): Data {
    const data = dataOf(width, multiple ? this.#count : this.#rows);
    if (width === 8 && !multiple) data.fill(Number.NaN);
    // Code 0 is NO_VALUE, so the codes of texts, and of false and true, begin after it.
    const ranks = new Uint32Array(sorted.length);
    for (const [rank, text] of sorted.entries()) ranks[this.#codes.get(text)!] = rank;
    const first = NO_VALUE + 1;
    const isText = this.#column.type === 'string';
    const element = (value: number): number => (width === 8 ? value : first + (isText ? ranks[value]! : value));
    if (multiple) {
      for (let i = 0; i < this.#count; i++) data[i] = element(this.#values[i]!);
    } else {
      for (let row = 0; row < this.#rows; row++) {
        const at = this.#starts[row]!;
        if (at < this.#starts[row + 1]!) data[row] = element(this.#values[at]!);
      }
    }
    return data;
  }

  #tooMany(what: string): TrawlError {
    return new TrawlError(
      'CONFIG_INVALID',
      `The column ${JSON.stringify(this.#column.name)} has more than ${what} in one shard. Use smaller shards (--shard-rows), or ` +
        'leave the column out.',
    );
  }
}

type Data = Uint8Array | Uint16Array | Uint32Array | Float64Array;

function dataOf(width: ColumnHeader['width'], length: number): Data {
  if (width === 8) return new Float64Array(length);
  return width === 1 ? new Uint8Array(length) : width === 2 ? new Uint16Array(length) : new Uint32Array(length);
}

function codeWidth(distinct: number): 1 | 2 | 4 {
  return distinct <= 0xff ? 1 : distinct <= 0xffff ? 2 : 4;
}

async function writeAt(
  file: Awaited<ReturnType<typeof open>>,
  values: NodeJS.TypedArray,
  position: number,
): Promise<void> {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  for (let at = 0; at < bytes.length; ) {
    at += (await file.write(bytes, at, Math.min(bytes.length - at, 2 ** 30), position + at)).bytesWritten;
  }
}

function longer<T extends Float64Array | Uint32Array>(values: T, type: new (length: number) => T): T {
  const copy = new type(2 * values.length);
  copy.set(values);
  return copy;
}

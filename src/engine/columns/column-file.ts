import { readFile } from 'node:fs/promises';
import { TrawlError } from '../../base/errors.ts';
import type { StoredValue } from '../filter/bind-filter.ts';
import type { ColumnType } from '../filter/column.ts';
import { type ColumnHeader, NO_VALUE } from './column-format.ts';
import { foreignColumn, readColumnHeader } from './column-header.ts';

type Data = Uint8Array | Uint16Array | Uint32Array | Float64Array;

/** A column file in memory, for the evaluation in TypeScript and for `trawl verify`. */
export class ColumnFile {
  readonly header: ColumnHeader;
  readonly #starts: Uint32Array | undefined;
  readonly #data: Data;
  /** In the order of their UTF-8 bytes. */
  readonly texts: readonly Buffer[];

  private constructor(header: ColumnHeader, buffer: ArrayBuffer, path: string) {
    const { rows, values, distinct, width, multiple, starts, data, textStarts, texts } = header;
    this.header = header;
    this.#starts = multiple ? new Uint32Array(buffer, starts, rows + 1) : undefined;
    const elements = multiple ? values : rows;
    const type = width === 8 ? Float64Array : width === 4 ? Uint32Array : width === 2 ? Uint16Array : Uint8Array;
    this.#data = new type(buffer, data, elements);
    this.texts = [];
    if (header.type !== 'string') return;
    const ends = new BigUint64Array(buffer, textStarts, distinct + 1);
    const bytes = Buffer.from(buffer, texts);
    for (let i = 0; i < distinct; i++) {
      const [from, to] = [Number(ends[i]!), Number(ends[i + 1]!)];
      if (from > to || to > bytes.length) throw foreignColumn(path, `its text ${i} is outside of the file`);
      (this.texts as Buffer[]).push(bytes.subarray(from, to));
    }
  }

  /**
   * @param type a file of another type is refused; absent: any type.
   * @throws TrawlError INDEX_FILE_MISSING, INDEX_FILE_FOREIGN or INDEX_VERSION_UNSUPPORTED, naming the file.
   */
  static async read(path: string, type?: ColumnType): Promise<ColumnFile> {
    let bytes: Buffer;
    try {
      bytes = await readFile(path);
    } catch (cause) {
      throw new TrawlError('INDEX_FILE_MISSING', `${path}: cannot be read (${(cause as Error).message}).`, { cause });
    }
    // The sections are aligned relative to the beginning of the file.
    const buffer = new Uint8Array(bytes).buffer;
    const header = readColumnHeader(bytes, path);
    if (type !== undefined && header.type !== type) {
      throw foreignColumn(path, `it has the type ${header.type}, but the column has the type ${type}`);
    }
    return new ColumnFile(header, buffer, path);
  }

  /** Number of elements of all rows. */
  get elements(): number {
    return this.#data.length;
  }

  /** The elements of the row are those from its start to its end in `element`. In a damaged file they may lie outside of it. */
  startOf(row: number): number {
    return this.#starts?.[row] ?? row;
  }

  endOf(row: number): number {
    return this.#starts?.[row + 1] ?? row + 1;
  }

  /** A code, or a float64; NO_VALUE or NaN in a row without a value. */
  element(at: number): number {
    return this.#data[at] ?? NO_VALUE;
  }

  /** The values of a row. */
  valuesOf(row: number): readonly StoredValue[] {
    const values: StoredValue[] = [];
    for (let at = this.startOf(row); at < this.endOf(row); at++) {
      const element = this.element(at);
      if (this.header.width === 8) {
        if (!Number.isNaN(element)) values.push(element);
      } else if (element !== NO_VALUE) {
        const code = element - NO_VALUE - 1;
        values.push(this.header.type === 'boolean' ? code : (this.texts[code]?.toString() ?? ''));
      }
    }
    return values;
  }
}

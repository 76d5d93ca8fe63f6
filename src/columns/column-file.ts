import { readFile } from 'node:fs/promises';
import { TrawlError } from '../errors.ts';
import type { StoredValue } from '../filter/bind-filter.ts';
import { COLUMN_TYPES, type ColumnType } from '../filter/column.ts';
import {
  COLUMN_FIELDS,
  COLUMN_HEADER_BYTES,
  COLUMN_MAGIC,
  COLUMN_VERSION,
  type ColumnHeader,
  layOut,
  NO_VALUE,
  TYPE_CODES,
} from './column-format.ts';

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
      if (from > to || to > bytes.length) throw foreign(path, `its text ${i} is outside of the file`);
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
    const header = columnHeader(bytes, path);
    if (type !== undefined && header.type !== type) {
      throw foreign(path, `it has the type ${header.type}, but the column has the type ${type}`);
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

function columnHeader(bytes: Buffer, path: string): ColumnHeader {
  if (bytes.length < COLUMN_HEADER_BYTES || bytes.toString('latin1', 0, 8) !== COLUMN_MAGIC) {
    throw foreign(path, 'it is not a column file');
  }
  const version = bytes.readUInt32LE(COLUMN_FIELDS.version);
  if (version !== COLUMN_VERSION) {
    throw new TrawlError(
      'INDEX_VERSION_UNSUPPORTED',
      `${path}: has version ${version}, but this program reads ${COLUMN_VERSION}. Update Trawl, or make the column again.`,
    );
  }
  const u32 = (name: 'type' | 'width' | 'multiple'): number => bytes.readUInt32LE(COLUMN_FIELDS[name]);
  const u64 = (name: 'rows' | 'values' | 'distinct' | 'starts' | 'data' | 'textStarts' | 'texts' | 'bytes'): number =>
    Number(bytes.readBigUInt64LE(COLUMN_FIELDS[name]));
  const type = COLUMN_TYPES.find((known) => TYPE_CODES[known] === u32('type'));
  const width = ([1, 2, 4, 8] as const).find((known) => known === u32('width'));
  if (type === undefined || width === undefined || (width === 8) !== (type === 'number' || type === 'date')) {
    throw foreign(path, 'its type or width is unknown');
  }
  const shape = { type, rows: u64('rows'), values: u64('values'), distinct: u64('distinct'), width };
  const header = layOut({ ...shape, multiple: u32('multiple') !== 0 }, u64('bytes') - u64('texts'));
  const same = (['starts', 'data', 'textStarts', 'texts', 'bytes'] as const).every(
    (name) => header[name] === u64(name),
  );
  if (!same || header.bytes !== bytes.length) throw foreign(path, 'its size differs from its header');
  return header;
}

function foreign(path: string, reason: string): TrawlError {
  return new TrawlError(
    'INDEX_FILE_FOREIGN',
    `${path}: ${reason}. Copy it again, or make it again with trawl optimize.`,
  );
}

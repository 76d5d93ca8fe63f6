import { readFile } from 'node:fs/promises';
import { TrawlError } from '../../base/errors.ts';
import { COLUMN_TYPES, type ColumnType, type StoredValue } from '../filter/column.ts';

/**
 * The layout of a column file (docs/index-format.md, "column-N.bin"). A value is a code (strings and booleans) or a float64 (numbers
 * and dates), so that the evaluation of a filter is one comparison for each row, over memory in order.
 */
const MAGIC = 'TRAWLCO\n';
const VERSION = 1;
const HEADER_BYTES = 128;
/** Sections begin at multiples of this. */
const ALIGNMENT = 64;
/** The code of a row without a value. Where a value is a float64, such a row has NaN. */
export const NO_VALUE = 0;
const TYPE_CODES: Readonly<Record<ColumnType, number>> = { string: 1, number: 2, boolean: 3, date: 4 };

/** Byte offsets of the header's fields: 32-bit fields, then 64-bit fields. */
const FIELDS_32 = { version: 8, type: 12, width: 40, multiple: 44 } as const;
const FIELDS_64 = {
  rows: 16,
  values: 24,
  distinct: 32,
  starts: 48,
  data: 56,
  textStarts: 64,
  texts: 72,
  bytes: 80,
} as const;

interface ColumnShape {
  readonly type: ColumnType;
  readonly rows: number;
  /** Values of all rows. */
  readonly values: number;
  /** Texts of the dictionary; 0 for other types than string. */
  readonly distinct: number;
  /** Bytes of a value. */
  readonly width: 1 | 2 | 4 | 8;
  /** Whether a row may have several values; else there is one element for each row. */
  readonly multiple: boolean;
}

export interface ColumnHeader extends ColumnShape {
  /** Byte offsets of the sections. */
  readonly starts: number;
  readonly data: number;
  readonly textStarts: number;
  readonly texts: number;
  /** Size of the file. */
  readonly bytes: number;
}

/** The sections of a file one after another. */
export function layOut(shape: ColumnShape, textBytes: number): ColumnHeader {
  const aligned = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
  const starts = HEADER_BYTES;
  const data = aligned(starts + (shape.multiple ? 4 * (shape.rows + 1) : 0));
  const elements = shape.multiple ? shape.values : shape.rows;
  const textStarts = aligned(data + elements * shape.width);
  const texts = aligned(textStarts + (shape.type === 'string' ? 8 * (shape.distinct + 1) : 0));
  return { ...shape, starts, data, textStarts, texts, bytes: texts + textBytes };
}

export function encodeColumnHeader(header: ColumnHeader): Uint8Array {
  const bytes = Buffer.alloc(HEADER_BYTES);
  bytes.write(MAGIC, 0, 'latin1');
  const { type, width, multiple } = header;
  const short = { version: VERSION, type: TYPE_CODES[type], width, multiple: Number(multiple) };
  for (const name of keysOf(FIELDS_32)) bytes.writeUInt32LE(short[name], FIELDS_32[name]);
  for (const name of keysOf(FIELDS_64)) bytes.writeBigUInt64LE(BigInt(header[name]), FIELDS_64[name]);
  return bytes;
}

function decodeColumnHeader(bytes: Buffer, path: string): ColumnHeader {
  if (bytes.length < HEADER_BYTES || bytes.toString('latin1', 0, 8) !== MAGIC) {
    throw foreignColumn(path, 'it is not a column file');
  }
  const u32 = (name: keyof typeof FIELDS_32): number => bytes.readUInt32LE(FIELDS_32[name]);
  const u64 = (name: keyof typeof FIELDS_64): number => Number(bytes.readBigUInt64LE(FIELDS_64[name]));
  if (u32('version') !== VERSION) {
    throw new TrawlError(
      'INDEX_VERSION_UNSUPPORTED',
      `${path}: has version ${u32('version')}, but this program reads ${VERSION}. Update Trawl, or make the column again.`,
    );
  }
  const type = COLUMN_TYPES.find((known) => TYPE_CODES[known] === u32('type'));
  const width = ([1, 2, 4, 8] as const).find((known) => known === u32('width'));
  if (type === undefined || width === undefined || (width === 8) !== (type === 'number' || type === 'date')) {
    throw foreignColumn(path, 'its type or width is unknown');
  }
  const shape = { type, rows: u64('rows'), values: u64('values'), distinct: u64('distinct'), width };
  const textBytes = u64('bytes') - u64('texts');
  const header = layOut({ ...shape, multiple: u32('multiple') !== 0 }, textBytes);
  if (textBytes < 0 || header.bytes !== bytes.length || keysOf(FIELDS_64).some((name) => header[name] !== u64(name))) {
    throw foreignColumn(path, 'its size differs from its header');
  }
  return header;
}

function keysOf<Fields extends object>(fields: Fields): (keyof Fields)[] {
  return Object.keys(fields) as (keyof Fields)[];
}

/** The error for a file that is damaged or not a column. */
function foreignColumn(path: string, reason: string): TrawlError {
  return new TrawlError(
    'INDEX_FILE_FOREIGN',
    `${path}: ${reason}. Copy it again, or make it again with trawl optimize.`,
  );
}

/** A column file in memory, for the evaluation in TypeScript and for `trawl verify`. */
export class ColumnFile {
  readonly header: ColumnHeader;
  /** In the order of their UTF-8 bytes. */
  readonly texts: readonly Buffer[];
  readonly #starts: Uint32Array | undefined;
  readonly #data: Uint8Array | Uint16Array | Uint32Array | Float64Array;

  private constructor(header: ColumnHeader, buffer: ArrayBuffer, path: string) {
    const { rows, values, distinct, width, multiple, starts, data, textStarts, texts } = header;
    this.header = header;
    this.#starts = multiple ? new Uint32Array(buffer, starts, rows + 1) : undefined;
    const type = width === 8 ? Float64Array : width === 4 ? Uint32Array : width === 2 ? Uint16Array : Uint8Array;
    this.#data = new type(buffer, data, multiple ? values : rows);
    this.texts = [];
    if (header.type !== 'string') return;
    const ends = new BigUint64Array(buffer, textStarts, distinct + 1);
    const bytes = Buffer.from(buffer, texts);
    this.texts = Array.from({ length: distinct }, (_, i) => {
      const [from, to] = [Number(ends[i]!), Number(ends[i + 1]!)];
      if (from > to || to > bytes.length) throw foreignColumn(path, `its text ${i} is outside of the file`);
      return bytes.subarray(from, to);
    });
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
    const header = decodeColumnHeader(bytes, path);
    if (type !== undefined && header.type !== type) {
      throw foreignColumn(path, `it has the type ${header.type}, but the column has the type ${type}`);
    }
    // A copy, because the sections are aligned relative to the beginning of the file.
    return new ColumnFile(header, new Uint8Array(bytes).buffer, path);
  }

  /** Number of elements of all rows. */
  get elements(): number {
    return this.#data.length;
  }

  /** A row's elements begin at its start and end before its end. In a damaged file they may lie outside of the file. */
  startOf(row: number): number {
    return this.#starts?.[row] ?? row;
  }

  endOf(row: number): number {
    return this.#starts?.[row + 1] ?? row + 1;
  }

  /** A code, or a float64; NO_VALUE or NaN in a row without a value. Codes are in the order of their texts. */
  element(at: number): number {
    return this.#data[at] ?? NO_VALUE;
  }

  /** Whether an element stands for a value. */
  isValue(element: number): boolean {
    return this.header.width === 8 ? !Number.isNaN(element) : element !== NO_VALUE;
  }

  /** The value that an element stands for. */
  valueOf(element: number): StoredValue {
    if (this.header.width === 8) return element;
    const code = element - NO_VALUE - 1;
    return this.header.type === 'boolean' ? code : (this.texts[code]?.toString() ?? '');
  }

  /** The values of a row. */
  valuesOf(row: number): readonly StoredValue[] {
    const values: StoredValue[] = [];
    for (let at = this.startOf(row); at < this.endOf(row); at++) {
      const element = this.element(at);
      if (this.isValue(element)) values.push(this.valueOf(element));
    }
    return values;
  }
}

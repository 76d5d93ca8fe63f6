import type { ColumnType } from '../filter/column.ts';

/**
 * The layout of a column file (docs/index-format.md, "column-N.bin"). A value is a code (strings and booleans) or a float64 (numbers
 * and dates), so that the evaluation of a filter is one comparison for each row, over memory in order.
 */
export const COLUMN_MAGIC = 'TRAWLCO\n';
export const COLUMN_VERSION = 1;
export const COLUMN_HEADER_BYTES = 128;
/** Sections begin at multiples of this. */
const COLUMN_ALIGNMENT = 64;
/** The code of a row without a value. Where a value is a float64, such a row has NaN. */
export const NO_VALUE = 0;

export const TYPE_CODES: Readonly<Record<ColumnType, number>> = { string: 1, number: 2, boolean: 3, date: 4 };

/** Byte offsets of the fields of the header. */
export const COLUMN_FIELDS = {
  version: 8,
  type: 12,
  rows: 16,
  values: 24,
  distinct: 32,
  width: 40,
  multiple: 44,
  starts: 48,
  data: 56,
  textStarts: 64,
  texts: 72,
  bytes: 80,
} as const;

export interface ColumnHeader {
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
  /** Byte offsets of the sections. */
  readonly starts: number;
  readonly data: number;
  readonly textStarts: number;
  readonly texts: number;
  /** Size of the file. */
  readonly bytes: number;
}

/** The sections of a file one after another. */
export function layOut(
  shape: Pick<ColumnHeader, 'type' | 'rows' | 'values' | 'distinct' | 'width' | 'multiple'>,
  textBytes: number,
): ColumnHeader {
  const starts = COLUMN_HEADER_BYTES;
  const data = aligned(starts + (shape.multiple ? 4 * (shape.rows + 1) : 0));
  const elements = shape.multiple ? shape.values : shape.rows;
  const textStarts = aligned(data + elements * shape.width);
  const texts = aligned(textStarts + (shape.type === 'string' ? 8 * (shape.distinct + 1) : 0));
  return { ...shape, starts, data, textStarts, texts, bytes: texts + textBytes };
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / COLUMN_ALIGNMENT) * COLUMN_ALIGNMENT;
}

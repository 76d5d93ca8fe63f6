import { TrawlError } from '../../base/errors.ts';
import { parseDate } from './date.ts';

/** What a column of the corpus holds. A row may have several values of the type, or none. */
export const COLUMN_TYPES = ['string', 'number', 'boolean', 'date'] as const;
export type ColumnType = (typeof COLUMN_TYPES)[number];

/** A column of the corpus that filters can name. */
export interface Column {
  /** Its key in a corpus row. Dots separate the keys of nested objects: `meta.source`. */
  readonly name: string;
  readonly type: ColumnType;
}

/** A value as a column file stores it: text; a number, a date in milliseconds since 1970, or 1 and 0 for true and false. */
export type StoredValue = string | number;

/** The stored form of a JSON value; undefined for a value of another type than the column's. */
export function storedValue(type: ColumnType, value: unknown): StoredValue | undefined {
  switch (type) {
    case 'string':
      return typeof value === 'string' ? wellFormed(value) : undefined;
    case 'number':
      // JSON.parse gives infinity for a number beyond float64. Adding 0 turns −0 into 0.
      return typeof value === 'number' && Number.isFinite(value) ? value + 0 : undefined;
    case 'boolean':
      return typeof value === 'boolean' ? Number(value) : undefined;
    case 'date':
      return typeof value === 'string' ? parseDate(value) : undefined;
    default:
      throw new TypeError(`unknown type of column: ${type satisfies never}`);
  }
}

/** Replaces lone surrogates, which JSON can have as escapes, as UTF-8 does. Texts are stored and compared as UTF-8. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}

/**
 * Parses the values of `--column`, such as `meta.date:date`.
 *
 * @throws TrawlError USAGE if a value is not NAME:TYPE, or if a name repeats.
 */
export function parseColumns(texts: readonly string[]): readonly Column[] {
  const columns = texts.map(parseColumn);
  const repeated = columns.find(({ name }, i) => columns.findIndex((other) => other.name === name) < i);
  if (repeated === undefined) return columns;
  throw new TrawlError('USAGE', `--column names ${JSON.stringify(repeated.name)} twice. Name each column once.`);
}

function parseColumn(text: string): Column {
  const colon = text.lastIndexOf(':');
  const name = text.slice(0, Math.max(0, colon));
  const type = COLUMN_TYPES.find((known) => known === text.slice(colon + 1));
  if (name !== '' && type !== undefined) return { name, type };
  throw new TrawlError(
    'USAGE',
    `--column is ${JSON.stringify(text)}; expected NAME:TYPE with the type ${COLUMN_TYPES.slice(0, -1).join(', ')} or ` +
      `${COLUMN_TYPES.at(-1)}, such as source:string or meta.date:date.`,
  );
}

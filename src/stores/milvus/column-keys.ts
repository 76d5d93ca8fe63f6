import { hash } from 'node:crypto';
import type { RowTest } from '../../engine/filter/bind-filter.ts';
import type { StoredValue } from '../../engine/filter/column.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { StoreFilters } from '../published/candidate-source.ts';

/**
 * Columns of the corpus as integers in the collection, over which Milvus evaluates filters. A number, date or boolean becomes an integer
 * with the same order; a text becomes a hash, which has no order. So no text needs Milvus's escaping, and nothing is rounded.
 */

/** The key of a row without a value: below the key of every number. */
export const NO_KEY = '-9223372036854775807';
/** The most columns that are stored as fields; Milvus allows 64 fields a collection. */
export const MAX_KEY_COLUMNS = 24;
const MAX_EXPRESSION = 100_000;
/** Milvus parses a chain into a tree as deep as the chain; its releases of 2023 refuse 49 conditions (milvus issues 25848, 29759). */
const MAX_JOINS = 40;
/** `row` is the field of the row numbers, which are not negative. */
const NO_ROW = 'row < 0';
const EVERY_ROW = 'row >= 0';
const SIGN_BIT = 1n << 63n;

export function columnField(column: number): string {
  return `column_${column}`;
}

/** The integer of a value as decimal text. Of numbers it has their order; NaN has none. */
export function columnKey(value: StoredValue): string {
  return String(typeof value === 'string' ? textKey(value) : numberKey(value));
}

/** The bits of a float64 as a signed integer: of two numbers of one sign, the bits of the larger absolute value are larger. */
function numberKey(value: number): bigint {
  // -0 equals 0.
  const bits = new BigUint64Array(Float64Array.of(value === 0 ? 0 : value).buffer)[0]!;
  return bits < SIGN_BIT ? bits : SIGN_BIT - bits;
}

function textKey(text: string): bigint {
  return hash('sha256', text, 'buffer').readBigUInt64BE() >> 1n;
}

/**
 * Milvus's expression that holds for the same rows as a filter.
 *
 * @param keyed positions of the columns that are fields; each has at most one value in every row.
 * @returns undefined if a part cannot be expressed: another column, the order of texts, too long a list, or too many conditions.
 * @internal Exported for tests.
 */
export function filterExpression(test: RowTest, keyed: ReadonlySet<number>): string | undefined {
  const text = expressionOf(test, keyed);
  if (text === undefined || text.length > MAX_EXPRESSION) return undefined;
  return (text.match(/ (?:and|or) /g)?.length ?? 0) > MAX_JOINS ? undefined : text;
}

function expressionOf(test: RowTest, keyed: ReadonlySet<number>): string | undefined {
  if ('tests' in test) {
    const parts = test.tests.map((each) => expressionOf(each, keyed));
    if (parts.includes(undefined)) return undefined;
    if (parts.length === 0) return test.type === 'and' ? EVERY_ROW : NO_ROW;
    return parts.map((part) => `(${part})`).join(` ${test.type} `);
  }
  if (test.type === 'not') {
    const inner = expressionOf(test.test, keyed);
    return inner === undefined ? undefined : `not (${inner})`;
  }
  if (!keyed.has(test.column)) return undefined;
  const field = columnField(test.column);
  if (test.type === 'exists') return `${field} != ${NO_KEY}`;
  if (test.type === 'in') {
    return test.values.length === 0 ? NO_ROW : `${field} in [${test.values.map(columnKey).join(',')}]`;
  }
  const { least, most } = test;
  // The hashes of texts have another order.
  if (typeof least?.value === 'string' || typeof most?.value === 'string') return undefined;
  const bounds = [`${field} != ${NO_KEY}`];
  if (least !== undefined) bounds.push(`${field} ${least.open ? '>' : '>='} ${columnKey(least.value)}`);
  if (most !== undefined) bounds.push(`${field} ${most.open ? '<' : '<='} ${columnKey(most.value)}`);
  return bounds.join(' and ');
}

/** Milvus's expressions of the filters that were evaluated here, by the rows that they gave. @param keyed as in `filterExpression`. */
export function pushedFilters(keyed: readonly number[]): StoreFilters {
  const fields = new Set(keyed);
  const expressions = new WeakMap<RowBitmap, string>();
  return {
    watching: (filters) => ({
      rows: async (test, signal) => {
        const rows = await filters.rows(test, signal);
        const expression = filterExpression(test, fields);
        if (expression !== undefined) expressions.set(rows, expression);
        return rows;
      },
      extremes: (column, request) => filters.extremes(column, request),
      close: () => filters.close(),
    }),
    expressionOf: (rows) => expressions.get(rows),
  };
}

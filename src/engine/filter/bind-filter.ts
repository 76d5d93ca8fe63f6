import { TrawlError } from '../../base/errors.ts';
import { type Column, type ColumnType, type StoredValue, storedValue } from './column.ts';
import { DATE_FORMATS } from './date.ts';
import { type Comparison, canonicalFilter, type Filter, type FilterBounds, type FilterValue } from './filter.ts';

export interface Bound {
  readonly value: StoredValue;
  /** Whether the value itself lies outside. */
  readonly open: boolean;
}

/** A filter over the columns of one index, by their positions. `in` and `range` hold if one value of the row passes. */
export type RowTest =
  | { readonly type: 'and' | 'or'; readonly tests: readonly RowTest[] }
  | { readonly type: 'not'; readonly test: RowTest }
  | { readonly type: 'exists'; readonly column: number }
  | { readonly type: 'in'; readonly column: number; readonly values: readonly StoredValue[] }
  | { readonly type: 'range'; readonly column: number; readonly least?: Bound; readonly most?: Bound };

export interface BoundFilter {
  readonly test: RowTest;
  /** Equal keys have equal rows, given the columns. */
  readonly key: string;
}

/**
 * Resolves the columns and values of a filter.
 *
 * @param index the name of the index, for messages.
 * @throws TrawlError INVALID_REQUEST for a column that the index does not have, a value of another type, or a range of booleans.
 */
export function bindFilter(filter: Filter, columns: readonly Column[], index: string): BoundFilter {
  const bind = (each: Filter): RowTest => {
    if ('and' in each) return { type: 'and', tests: each.and.map(bind) };
    if ('or' in each) return { type: 'or', tests: each.or.map(bind) };
    if ('not' in each) return { type: 'not', test: bind(each.not) };
    const column = columns.findIndex(({ name }) => name === each.column);
    if (column < 0) throw unknownColumn(each.column, columns, index);
    if (each.op === 'exists') return { type: 'exists', column };
    const stored = (value: FilterValue): StoredValue => boundValue(value, columns[column]!);
    if (each.op === 'in') return { type: 'in', column, values: each.values.map(stored) };
    if (each.op === 'range') return range(column, columns[column]!, each, stored);
    return comparison(column, columns[column]!, each.op, stored(each.value));
  };
  return { test: bind(filter), key: canonicalFilter(filter) };
}

function comparison(column: number, { name, type }: Column, op: Comparison, value: StoredValue): RowTest {
  if (op === '=' || op === '!=') {
    const test = { type: 'in', column, values: [value] } as const;
    return op === '=' ? test : { type: 'not', test };
  }
  if (type === 'boolean') throw booleanOrder(name, op);
  const bound: Bound = { value, open: op === '<' || op === '>' };
  return op === '<' || op === '<=' ? { type: 'range', column, most: bound } : { type: 'range', column, least: bound };
}

function range(
  column: number,
  { name, type }: Column,
  { gt, gte, lt, lte }: FilterBounds,
  stored: (value: FilterValue) => StoredValue,
): RowTest {
  if (type === 'boolean') throw booleanOrder(name, 'range');
  const bound = (open: FilterValue | undefined, closed: FilterValue | undefined): Bound | undefined => {
    if (open !== undefined) return { value: stored(open), open: true };
    return closed === undefined ? undefined : { value: stored(closed), open: false };
  };
  return { type: 'range', column, least: bound(gt, gte), most: bound(lt, lte) };
}

function booleanOrder(name: string, op: string): TrawlError {
  return new TrawlError(
    'INVALID_REQUEST',
    `The column ${JSON.stringify(name)} is a boolean, so it cannot be compared by ${op}. Use =, !=, in or exists.`,
  );
}

function boundValue(value: FilterValue, { name, type }: Column): StoredValue {
  const stored = storedValue(type, value);
  if (stored !== undefined) return stored;
  throw new TrawlError(
    'INVALID_REQUEST',
    `The column ${JSON.stringify(name)} is a ${type}, but the filter compares it with ${JSON.stringify(value)}; expected ${EXPECTED[type]}.`,
    { details: { column: name, type } },
  );
}

const EXPECTED: Readonly<Record<ColumnType, string>> = {
  string: 'a text (in an expression in single quotes)',
  number: 'a number without quotes',
  boolean: 'true or false',
  date: `a date such as ${DATE_FORMATS}`,
};

export function unknownColumn(name: string, columns: readonly Column[], index: string): TrawlError {
  const shown = JSON.stringify(name.slice(0, 100));
  const known = columns.map((column) => `${column.name} (${column.type})`).join(', ');
  return new TrawlError(
    'INVALID_REQUEST',
    columns.length === 0
      ? `The filter names the column ${shown}, but the index ${index} has no columns. Add them with trawl optimize INDEX --column NAME:TYPE.`
      : `The filter names the column ${shown}, but the index ${index} has ${known}.`,
    { details: { columns: columns.map((column) => column.name) } },
  );
}

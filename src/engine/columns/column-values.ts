import { isObject } from '../../base/objects.ts';
import type { StoredValue } from '../filter/bind-filter.ts';
import type { Column, ColumnType } from '../filter/column.ts';
import { DATE_FORMATS, parseDate } from '../filter/date.ts';
import { wellFormed } from '../filter/well-formed.ts';

/** A value of another type than the column's, described for a message. */
interface WrongValue {
  readonly wrong: string;
}

/**
 * The values of a column in a parsed corpus row, as column files store them; several for an array, none if the row lacks the column
 * or has null there. The name is a key of the row, or else a path of keys; arrays on the path are walked through.
 */
export function columnValues(row: unknown, { name, type }: Column): readonly StoredValue[] | WrongValue {
  const found: unknown[] = [];
  if (isObject(row) && Object.hasOwn(row, name)) collect(row[name], [], found);
  else collect(row, name.split('.'), found);
  const values: StoredValue[] = [];
  for (const value of found) {
    const stored = STORED[type](value);
    if (stored === undefined) return { wrong: `${JSON.stringify(name)} is a ${type}, but found ${shown(value, type)}` };
    values.push(stored);
  }
  return values;
}

function collect(value: unknown, keys: readonly string[], found: unknown[]): void {
  if (value === null || value === undefined) return;
  if (Array.isArray(value)) {
    for (const each of value) collect(each, keys, found);
    return;
  }
  const [key, ...rest] = keys;
  if (key === undefined) found.push(value);
  else if (isObject(value) && Object.hasOwn(value, key)) collect(value[key], rest, found);
}

const STORED: Readonly<Record<ColumnType, (value: unknown) => StoredValue | undefined>> = {
  string: (value) => (typeof value === 'string' ? wellFormed(value) : undefined),
  // JSON.parse gives infinity for a number beyond float64. Adding 0 turns −0 into 0.
  number: (value) => (typeof value === 'number' && Number.isFinite(value) ? value + 0 : undefined),
  boolean: (value) => (typeof value === 'boolean' ? Number(value) : undefined),
  date: (value) => (typeof value === 'string' ? parseDate(value) : undefined),
};

const MAX_SHOWN = 60;

function shown(value: unknown, type: ColumnType): string {
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'number' && !Number.isFinite(value)) return 'a number beyond float64';
  const text = JSON.stringify(value).slice(0, MAX_SHOWN);
  return type === 'date' ? `${text}; a date is a text such as ${DATE_FORMATS}` : `the ${typeof value} ${text}`;
}

import { isObject, jsonExcerpt } from '../../base/objects.ts';
import { type Column, type ColumnType, type StoredValue, storedValue } from '../filter/column.ts';
import { DATE_FORMATS } from '../filter/date.ts';

/**
 * The values of a column in a parsed corpus row, as column files store them; several for an array, none if the row lacks the column
 * or has null there. The name is a key of the row, or else a path of keys; arrays on the path are walked through. `wrong` describes a
 * value of another type than the column's, for a message.
 */
export function columnValues(
  row: unknown,
  { name, type }: Column,
): readonly StoredValue[] | { readonly wrong: string } {
  const values: StoredValue[] = [];
  for (const value of valuesAt(row, name)) {
    const stored = storedValue(type, value);
    if (stored === undefined)
      return { wrong: `${JSON.stringify(name)} is a ${type}, but found ${describe(value, type)}` };
    values.push(stored);
  }
  return values;
}

/** The values of a row under a name, as `columnValues` finds them, of any type but null. */
export function valuesAt(row: unknown, name: string): readonly unknown[] {
  const found: unknown[] = [];
  if (isObject(row) && Object.hasOwn(row, name)) collect(row[name], [], found);
  else collect(row, name.split('.'), found);
  return found;
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

function describe(value: unknown, type: ColumnType): string {
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'number' && !Number.isFinite(value)) return 'a number beyond float64';
  const text = jsonExcerpt(value);
  if (type === 'number' && typeof value === 'bigint')
    return `the integer ${value}, which a float64 does not hold: write it as a text, and declare a string`;
  return type === 'date' ? `${text}; a date is a text such as ${DATE_FORMATS}` : `the ${typeof value} ${text}`;
}

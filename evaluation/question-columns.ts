import { isObject } from '../src/base/objects.ts';
/** The columns of an entry of a file of questions. */
export type Columns = ReadonlyMap<string, unknown>;

/** Makes the error for a fault of an entry; it names the file and the place. */
export type Fail = (reason: string) => Error;

/** The members of a JSON object as columns; undefined if the value is not an object. */
export function columnsOf(value: unknown): Columns | undefined {
  if (!isObject(value)) return undefined;
  return new Map<string, unknown>(Object.entries(value));
}

/** Whether a text is more than white space. Blank titles, answers and ids judge nothing. */
export function isNotBlank(text: string): boolean {
  return text.trim() !== '';
}

/** `round_index`; undefined if it is absent. */
export function roundOf(value: unknown, fail: Fail): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 2 ** 31) return value;
  throw fail('"round_index" must be an integer from 0 to 2147483647, or absent');
}

/** A column that is a list of strings; undefined if it is absent or null. */
export function stringsOf(columns: Columns, name: string, fail: Fail): string[] | undefined {
  const value = columns.get(name);
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value) && value.every((text) => typeof text === 'string')) return value;
  throw fail(`"${name}" must be an array of strings or absent`);
}

/** A list of ids without blank ones; undefined if it is absent or null. */
export function idsOf(value: unknown, fail: Fail): string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw fail('"gold_ids" must be an array of passage ids or absent');
  return value.map((id: unknown) => idOf(id, 'an element of "gold_ids"', fail)).filter(isNotBlank);
}

/** Names of the column that identifies an entry. */
export const ID_COLUMNS = ['id', '_id', 'question_id', 'qid', 'query_id'] as const;

/** The column that identifies an entry, whatever its name is; undefined without one. */
export function idColumn(columns: Columns): unknown {
  const name = ID_COLUMNS.find((each) => !isAbsent(columns.get(each)));
  return name === undefined ? undefined : columns.get(name);
}

/** Whether an entry lacks a column: null counts as absent. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** Rejects integers above 2^53 within arrays: the JSON parser has rounded them, so they could name another passage. */
export function idOf(value: unknown, name: string, fail: Fail): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'bigint') return String(value);
  if (Number.isSafeInteger(value)) return String(value);
  throw fail(`${name} must be a string or an integer up to 2^53; write larger integers as strings`);
}

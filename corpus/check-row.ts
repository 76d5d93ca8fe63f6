import { isObject } from '../src/base/objects.ts';
import { MAX_INTEGER_DIGITS, parseKeepingNumbers } from '../src/index/passages/exact-numbers.ts';
import { columnOf, type PassageId, type PassageRow } from './passage.ts';
import { type ColumnNames, columnNames, columnsOfRow, renamedRow, roleOf } from './row-columns.ts';

/** A row as read from a file of any format; `line` as in `PassageLocation`. */
export type ReadRow =
  | {
      readonly ok: true;
      readonly line: number;
      readonly id: PassageId;
      readonly document: string;
      readonly row: PassageRow;
    }
  | BadRow;

export interface BadRow {
  readonly ok: false;
  readonly line: number;
  readonly reason: string;
}

/**
 * Checks that a row is a passage: it needs a text; its title, if present, is a string; its id, if present, is a string or an integer. Null
 * counts as absent. Other columns may hold anything. Columns with other names get the names that replies read (`renamedRow`).
 */
export function checkRow(line: number, value: unknown, document: string, given: ColumnNames = {}): ReadRow {
  const bad = (reason: string): BadRow => ({ ok: false, line, reason });
  if (!isObject(value)) {
    const advice = Array.isArray(value) ? "; write one object a line: jq -c '.[]' FILE > NEW" : '';
    return bad(`expected a JSON object with "contents" or "text", found ${typeName(value)}${advice}`);
  }
  const row = value as PassageRow;
  const columns = columnsOfRow(row, given);
  if ('reason' in columns) return bad(columns.reason);
  const valueIn = (name: string | undefined): unknown =>
    name === undefined ? undefined : (columnOf(row, name) ?? undefined);
  const [text, title] = [valueIn(columns.text), valueIn(columns.title)];
  if (text === undefined) {
    const empty = Object.keys(row).find((name) => row[name] === null && roleOf(name) === 'text');
    if (empty !== undefined) return bad(`${JSON.stringify(empty)} is null, expected a string`);
    return bad(`expected a column "contents" or "text", found ${columnNames(row)}; name the text with --text-column`);
  }
  if (typeof text !== 'string') return bad(`${JSON.stringify(columns.text)} must be a string, found ${typeName(text)}`);
  if (title !== undefined && typeof title !== 'string') {
    return bad(`${JSON.stringify(columns.title)} must be a string, found ${typeName(title)}`);
  }
  const id = valueIn(columns.id) ?? null;
  if (!isPassageId(id)) {
    const expected = `a string or an integer of at most ${MAX_INTEGER_DIGITS} digits`;
    return bad(`${JSON.stringify(columns.id)} must be ${expected}, found ${typeName(id)}`);
  }
  const renamed = renamedRow(row, columns);
  return {
    ok: true,
    line,
    id: Object.is(id, -0) ? 0 : id,
    row: renamed ?? row,
    document: renamed === undefined ? document : renamedDocument(document, columns),
  };
}

function renamedDocument(document: string, columns: ColumnNames): string {
  return JSON.stringify(renamedRow(parseKeepingNumbers(document) as PassageRow, columns));
}

/** An unsafe integer was rounded or written with an exponent, so it cannot be kept exactly. */
function isPassageId(id: unknown): id is PassageId {
  return id === null || typeof id === 'string' || typeof id === 'bigint' || Number.isSafeInteger(id);
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (value instanceof Uint8Array) return 'bytes that are not UTF-8 text';
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    // pandas makes float64 of a column of integers with nulls.
    return Number.isInteger(value) ? 'a float64 that may be rounded; write ids as strings' : 'a number with a fraction';
  }
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

import { isObject } from '../src/base/objects.ts';
import { idColumnOf } from '../src/index/passages/document-fields.ts';
import { MAX_INTEGER_DIGITS } from '../src/index/passages/exact-numbers.ts';
import { columnOf, type PassageId, type PassageRow } from './passage.ts';

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
 * Checks that a row is a passage: it needs a string `contents` or a string `text`; `title`, if present, is a string; `id`, if
 * present, is a string or an integer (BEIR calls it `_id`). Null counts as absent. Other columns may hold anything.
 */
export function checkRow(line: number, value: unknown, document: string): ReadRow {
  const bad = (reason: string): BadRow => ({ ok: false, line, reason });
  if (!isObject(value)) {
    return bad(`expected a JSON object with "contents" or "text", found ${typeName(value)}`);
  }
  const row = value as PassageRow;
  const contents = columnOf(row, 'contents') ?? undefined;
  const text = columnOf(row, 'text') ?? undefined;
  const title = columnOf(row, 'title') ?? undefined;
  if (contents !== undefined && typeof contents !== 'string') {
    return bad(`"contents" must be a string, found ${typeName(contents)}`);
  }
  if (contents === undefined && typeof text !== 'string') {
    if (text !== undefined) return bad(`"text" must be a string, found ${typeName(text)}`);
    return bad(`expected a column "contents" or "text", found ${columnNames(row)}`);
  }
  if (title !== undefined && typeof title !== 'string') {
    return bad(`"title" must be a string, found ${typeName(title)}`);
  }
  const id = columnOf(row, idColumnOf(row)) ?? null;
  if (isPassageId(id)) return { ok: true, line, id: Object.is(id, -0) ? 0 : id, document, row };
  return bad(`"id" must be a string or an integer of at most ${MAX_INTEGER_DIGITS} digits, found ${typeName(id)}`);
}

/** An unsafe integer was rounded or written with an exponent, so it cannot be kept exactly. */
function isPassageId(id: unknown): id is PassageId {
  return id === null || typeof id === 'string' || typeof id === 'bigint' || Number.isSafeInteger(id);
}

export function columnNames(row: PassageRow): string {
  const names = Object.keys(row);
  if (names.length === 0) return 'no columns';
  const shown = names.slice(0, 20).map((name) => JSON.stringify(name.slice(0, 40)));
  return `the columns ${shown.join(', ')}${names.length > shown.length ? `, and ${names.length - shown.length} more` : ''}`;
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (value instanceof Uint8Array) return 'bytes that are not UTF-8 text';
  if (typeof value === 'number' && !Number.isSafeInteger(value)) return 'another number';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

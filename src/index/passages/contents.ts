import { isObject } from '../../base/objects.ts';
import { parseKeepingNumbers } from './exact-numbers.ts';

/**
 * Recognises a row that starts with an id and a string `contents`, as in the published corpora. Avoids parsing, because a reply
 * can have a hundred thousand rows.
 */
const STARTS_WITH_ID_AND_CONTENTS = /^\{\s*"id"\s*:\s*(?:"[^"\\]*"|-?\d+)\s*,\s*"contents"\s*:\s*"/;

/**
 * The text of a passage for clients: its `contents`, else the title in double quotes, a newline and the text, else the text
 * alone. Undefined for a row without these columns.
 */
export function contentsOf(row: Record<string, unknown>): string | undefined {
  if (typeof row.contents === 'string') return row.contents;
  if (typeof row.text !== 'string') return undefined;
  const title = row.title;
  return typeof title === 'string' && title !== '' ? `"${title}"\n${row.text}` : row.text;
}

/** The text of a passage without its title: its column `text`, else its `contents` (as `contentsOf` returns it) after their first line. */
export function textOf(row: Record<string, unknown>, contents: string): string {
  return Object.hasOwn(row, 'text') && typeof row.text === 'string'
    ? row.text
    : contents.slice(contents.indexOf('\n') + 1);
}

/**
 * Adds `contents` at the end of a row without it. Keeps all other characters, so that ids beyond 2^53 and the notation of
 * numbers do not change.
 */
export function withContents(documentJson: string): string {
  if (STARTS_WITH_ID_AND_CONTENTS.test(documentJson)) return documentJson;
  const fields = fieldsOf(documentJson);
  if (fields === undefined || typeof fields.contents === 'string') return documentJson;
  const contents = contentsOf(fields);
  return contents === undefined ? documentJson : withMember(documentJson, fields, 'contents', contents);
}

/** Adds a `url` at the end of a row without one, or replaces one that is not a string. */
export function withUrl(documentJson: string, make: () => string): string {
  const fields = fieldsOf(documentJson);
  if (fields === undefined || typeof fields.url === 'string') return documentJson;
  return withMember(documentJson, fields, 'url', make());
}

function fieldsOf(documentJson: string): Readonly<Record<string, unknown>> | undefined {
  const row: unknown = JSON.parse(documentJson);
  return isObject(row) ? row : undefined;
}

function withMember(documentJson: string, fields: Record<string, unknown>, name: string, text: string): string {
  // The row has the member with another type. Replace it, because parsers treat repeated names differently.
  if (Object.hasOwn(fields, name)) {
    return JSON.stringify({ ...(parseKeepingNumbers(documentJson) as Record<string, unknown>), [name]: text });
  }
  const comma = Object.keys(fields).length === 0 ? '' : ',';
  return `${documentJson.slice(0, documentJson.lastIndexOf('}'))}${comma}"${name}":${JSON.stringify(text)}}`;
}

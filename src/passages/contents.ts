import { parse, stringify } from 'lossless-json';

/**
 * A row that begins with an id and then `contents` as a string, as the published corpora have it: told without parsing,
 * because a reply may hold a hundred thousand rows.
 */
const STARTS_WITH_ID_AND_CONTENTS = /^\{\s*"id"\s*:\s*(?:"[^"\\]*"|-?\d+)\s*,\s*"contents"\s*:\s*"/;

/**
 * What clients read of a passage: the row's own `contents`, else the title in literal double quotes, a newline and the
 * text, else the text alone. Undefined where the row has none of them.
 */
export function contentsOf(row: Record<string, unknown>): string | undefined {
  if (typeof row.contents === 'string') return row.contents;
  if (typeof row.text !== 'string') return undefined;
  const title = row.title;
  return typeof title === 'string' && title !== '' ? `"${title}"\n${row.text}` : row.text;
}

/**
 * The row with `contents`, added at the end where it is missing. Everything else stays as it is written, character for
 * character, so that ids beyond 2^53 and the spelling of numbers survive.
 */
export function withContents(documentJson: string): string {
  if (STARTS_WITH_ID_AND_CONTENTS.test(documentJson)) return documentJson;
  const fields = fieldsOf(documentJson);
  if (fields === undefined || typeof fields.contents === 'string') return documentJson;
  const contents = contentsOf(fields);
  return contents === undefined ? documentJson : withMember(documentJson, fields, 'contents', contents);
}

/** The row with a `url` made for it where it has none of its own that is a text; the rest as it is written. */
export function withUrl(documentJson: string, make: () => string): string {
  const fields = fieldsOf(documentJson);
  if (fields === undefined || typeof fields.url === 'string') return documentJson;
  return withMember(documentJson, fields, 'url', make());
}

function fieldsOf(documentJson: string): Record<string, unknown> | undefined {
  const row: unknown = JSON.parse(documentJson);
  return typeof row !== 'object' || row === null || Array.isArray(row) ? undefined : (row as Record<string, unknown>);
}

function withMember(documentJson: string, fields: Record<string, unknown>, name: string, text: string): string {
  // A second member of the same name would be read differently by different parsers, so this rare row is written anew.
  if (Object.hasOwn(fields, name)) {
    return stringify({ ...(parse(documentJson) as Record<string, unknown>), [name]: text }) ?? documentJson;
  }
  const comma = Object.keys(fields).length === 0 ? '' : ',';
  return `${documentJson.slice(0, documentJson.lastIndexOf('}'))}${comma}"${name}":${JSON.stringify(text)}}`;
}

import type { LexicalField } from '../../engine/lexical/lexical-settings.ts';

/**
 * The row of a document in the corpus that a refresh indexes: the members of the document after its index and id. Fields that it
 * lacks stand before them as empty texts, because a passage needs a text, and its title would else be the first line of the text.
 *
 * @param source a JSON object without line ends.
 */
export function writtenRow(index: string, id: string, source: string, fields: readonly LexicalField[]): string {
  const members = JSON.parse(source) as object;
  const missing = fields.filter((field) => !Object.hasOwn(members, field)).map((field) => `"${field}":"",`);
  const own = source.slice(source.indexOf('{') + 1, source.lastIndexOf('}')).trim();
  const more = own === '' ? '' : `,${own}`;
  return `{${missing.join('')}"_index":${JSON.stringify(index)},"_id":${JSON.stringify(id)}${more}}`;
}

const ADDED = /^\{(?:"(?:title|text|contents)":"",)*"_index":"[^"\\]*","_id":"(?:[^"\\]|\\.)*",?/;

/** The document of a row that `writtenRow` made; any other row unchanged. */
export function sourceOfRow(row: string): string {
  const added = ADDED.exec(row)?.[0];
  return added === undefined ? row : `{${row.slice(added.length)}`;
}

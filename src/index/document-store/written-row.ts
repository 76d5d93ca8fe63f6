import { memberText } from '../passages/document-fields.ts';
import type { IndexDefinition } from './index-files.ts';

/** Stands before the members that `writtenRow` adds. No document has it: Elasticsearch keeps the name for itself. */
const ADDED = ',"_ignored":null';
const ADDED_MEMBERS = /^(?:,"(?:title|text|contents)":(?:null|"(?:[^"\\]|\\.)*"))+\}$/;
const BEGINNING = /^\{"_index":"[^"\\]*","_id":"(?:[^"\\]|\\.)*",?/;

type Mapped = Pick<IndexDefinition, 'name' | 'fields'>;

/**
 * The row of a document in the corpus that a refresh indexes: the members of the document between its index and id and what a passage
 * needs beside them. Of members with the same name the last counts.
 *
 * @param source a JSON object without line ends.
 */
export function writtenRow(definition: Mapped, id: string, source: string): string {
  const own = source.slice(source.indexOf('{') + 1, source.lastIndexOf('}')).trim();
  const added = Object.entries(addedMembers(JSON.parse(source) as Readonly<Record<string, unknown>>, definition));
  const members = added.map(([name, value]) => `,"${name}":${JSON.stringify(value)}`).join('');
  const more = `${own === '' ? '' : `,${own}`}${members === '' ? '' : `${ADDED}${members}`}`;
  return `{"_index":${JSON.stringify(definition.name)},"_id":${JSON.stringify(id)}${more}}`;
}

/** A passage needs a string as its text and its title. The text of a document without `text` is what is searched, so all routes return it. */
function addedMembers(
  members: Readonly<Record<string, unknown>>,
  { fields }: Mapped,
): { title?: string; text?: string; contents?: string | null } {
  const lacks = (name: string): boolean => !Object.hasOwn(members, name) || typeof members[name] !== 'string';
  const isTogether = fields.includes('contents');
  const texts = fields.includes('text') ? ['text'] : fields.filter((field) => field !== 'title');
  const text = texts
    .map((field) => memberText(members, field))
    .filter((each) => each !== '')
    .join('\n');
  return {
    ...((members['title'] ?? null) !== null && lacks('title') ? { title: memberText(members, 'title') } : {}),
    ...(lacks('text') && (!isTogether || fields.includes('text')) ? { text } : {}),
    ...(isTogether && lacks('contents') ? { contents: memberText(members, 'contents') } : {}),
    ...(!isTogether && lacks('contents') && Object.hasOwn(members, 'contents') ? { contents: null } : {}),
  };
}

/** The document of a row that `writtenRow` made; any other row unchanged. */
export function sourceOfRow(row: string): string {
  const beginning = BEGINNING.exec(row)?.[0];
  if (beginning === undefined) return row;
  const at = row.lastIndexOf(ADDED);
  const end = at !== -1 && ADDED_MEMBERS.test(row.slice(at + ADDED.length)) ? at : row.length - 1;
  return `{${row.slice(beginning.length, end)}}`;
}

import { encodeVector } from '../../base/base64-vector.ts';
import { isObject } from '../../base/objects.ts';
import { memberText } from '../passages/document-fields.ts';
import type { IndexDefinition } from './index-files.ts';

/** Stands before the members that `writtenRow` adds. No document has it: Elasticsearch keeps the name for itself. */
const ADDED = ',"_ignored":null';
const ADDED_MEMBERS = /^(?:,"(?:title|text|contents|_vector|_has_vector)":(?:null|true|"(?:[^"\\]|\\.)*"))+\}$/;
const BEGINNING = /^\{"_index":"[^"\\]*","_id":"(?:[^"\\]|\\.)*",?/;

/** Members of a row: its vector as `encodeVector` writes it, empty if it has none, and whether it has one. */
export const [VECTOR, HAS_VECTOR] = ['_vector', '_has_vector'];

type Mapped = Pick<IndexDefinition, 'name' | 'fields' | 'vector'>;

/**
 * The row of a document in the corpus that a refresh indexes: the members of the document between its index and id and what a passage
 * needs beside them. Of members with the same name the last counts.
 *
 * @param source a JSON object without line ends.
 */
export function writtenRow(definition: Mapped, id: string, source: string): string {
  const own = source.slice(source.indexOf('{') + 1, source.lastIndexOf('}')).trim();
  const document = JSON.parse(source) as Readonly<Record<string, unknown>>;
  const added = Object.entries({ ...addedMembers(document, definition), ...vectorMembers(document, definition) });
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

function vectorMembers(members: Readonly<Record<string, unknown>>, { vector }: Mapped): object {
  if (vector?.dimension === undefined) return {};
  const [values] = membersAt(members, vector.field) as readonly (readonly number[])[];
  if (values === undefined) return { [VECTOR]: '', [HAS_VECTOR]: null };
  return { [VECTOR]: encodeVector(Float32Array.from(values)), [HAS_VECTOR]: true };
}

/** The values but null at a path of names with dots in between, also within lists of objects. */
export function membersAt(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value.flatMap((each) => membersAt(each, path));
  if (!isObject(value)) return [];
  const own = Object.hasOwn(value, path) ? (value[path] ?? undefined) : undefined;
  const within = Array.from(path.matchAll(/\./g), ({ index }) => {
    const name = path.slice(0, index);
    return Object.hasOwn(value, name) ? membersAt(value[name], path.slice(index + 1)) : [];
  });
  return [...(own === undefined ? [] : [own]), ...within.flat()];
}

/** The document of a row that `writtenRow` made; any other row unchanged. */
export function sourceOfRow(row: string): string {
  const beginning = BEGINNING.exec(row)?.[0];
  if (beginning === undefined) return row;
  const at = row.lastIndexOf(ADDED);
  const end = at !== -1 && ADDED_MEMBERS.test(row.slice(at + ADDED.length)) ? at : row.length - 1;
  return `{${row.slice(beginning.length, end)}}`;
}

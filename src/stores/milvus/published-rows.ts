import { LOOKUPS, type Lookup } from '../../index/passages/schema.ts';
import { lookupHash, type PublishedRow } from '../published/published-row.ts';
import { columnField } from './column-keys.ts';
import { type FieldSpec, MAX_TEXT_BYTES } from './milvus-facts.ts';

/** Fields of the collection with an entity a live row. */
export const ROW_FIELD = 'row';
export const VECTOR_FIELD = 'vector';
const ID_FIELD = 'passage_id';

/** The most pieces of a document: Milvus allows 64 fields a collection. */
const MAX_PIECES = 16;
export const MAX_DOCUMENT_BYTES = MAX_PIECES * (MAX_TEXT_BYTES - 3);

/** The field by which passages are looked up: a hash of the key, because texts in Milvus's expressions would need its own escaping. */
export function lookupField(by: Lookup): string {
  return `${by}_hash`;
}

/** How many fields a collection needs whose longest document has `bytes`. A piece may end up to three bytes before its limit. */
export function piecesFor(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / (MAX_TEXT_BYTES - 3)));
}

export function pieceFields(pieces: number): string[] {
  return Array.from({ length: pieces }, (_, i) => (i === 0 ? 'document' : `document_${i + 1}`));
}

export function rowFields(dimension: number, { pieces, keyColumns = [] }: RowForm): FieldSpec[] {
  return [
    { name: ROW_FIELD, type: 'int64', isKey: true },
    { name: VECTOR_FIELD, type: 'vector', dimension },
    { name: ID_FIELD, type: 'text' },
    ...LOOKUPS.map((by) => ({ name: lookupField(by), type: 'int64' }) as const),
    ...pieceFields(pieces).map((name) => ({ name, type: 'text' }) as const),
    ...keyColumns.map((column) => ({ name: columnField(column), type: 'int64' }) as const),
  ];
}

/** What the fields of a row depend on. */
interface RowForm {
  /** Fields that a document is divided into. */
  readonly pieces: number;
  /** Positions of the columns that are fields. */
  readonly keyColumns?: readonly number[];
}

/** The entity of a row. `pieces` must be enough for its document. */
export function entityOf(
  { row, vector, document, id, lookups, keys }: PublishedRow,
  { pieces, keyColumns = [] }: RowForm,
): Record<string, unknown> {
  const entity: Record<string, unknown> = {
    [ROW_FIELD]: row,
    [VECTOR_FIELD]: Array.from(vector),
    // The mark tells an empty id from none.
    [ID_FIELD]: id === null ? '' : `=${id}`,
  };
  for (const by of LOOKUPS) entity[lookupField(by)] = lookupHash(by, lookups[by]);
  const parts = splitText(document);
  for (const [i, name] of pieceFields(pieces).entries()) entity[name] = parts[i] ?? '';
  for (const [i, column] of keyColumns.entries()) entity[columnField(column)] = keys[i]!;
  return entity;
}

export function documentOf(entity: Readonly<Record<string, unknown>>, pieces: number): string {
  return pieceFields(pieces)
    .map((name) => entity[name])
    .join('');
}

/** The id of an entity as text, null for a passage without one. */
export function idOf(entity: Readonly<Record<string, unknown>>): string | null {
  const marked = String(entity[ID_FIELD]);
  return marked === '' ? null : marked.slice(1);
}

/** The keys of an entity's columns. */
export function keysOf(entity: Readonly<Record<string, unknown>>, keyColumns: readonly number[]): string[] {
  return keyColumns.map((column) => String(entity[columnField(column)]));
}

export const ID_FIELDS: readonly string[] = [ROW_FIELD, ID_FIELD];

/** Divides a text into pieces of at most `MAX_TEXT_BYTES` bytes of UTF-8, between characters. */
function splitText(text: string): string[] {
  if (text.length * 3 <= MAX_TEXT_BYTES) return [text];
  const bytes = Buffer.from(text);
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    let end = Math.min(bytes.length, at + MAX_TEXT_BYTES);
    // A byte 10xxxxxx continues a character.
    while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end--;
    pieces.push(bytes.toString('utf8', at, end));
    at = end;
  }
  return pieces;
}

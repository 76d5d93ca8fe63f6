import { LOOKUPS } from '../../index/passages/schema.ts';
import type { PublicationPlan } from '../published/publication.ts';
import {
  ID_FIELD,
  lookupField,
  lookupHash,
  PIECE_BYTES,
  type PublishedRow,
  ROW_FIELD,
  VECTOR_FIELD,
} from '../published/published-row.ts';
import type { PassageReader } from '../published/stored-passages.ts';
import { columnField } from './column-keys.ts';
import { fromAllRows, type PublishedCollection, readRows } from './milvus-candidates.ts';
import type { Entity, FieldSpec, MilvusClient } from './milvus-client.ts';

/** Bytes that a piece of a document always has room for: it ends up to three bytes before its limit, between characters. */
export const FILLED_PIECE_BYTES = PIECE_BYTES - 3;
/** The most bytes of a document in 16 pieces; Milvus allows 64 fields a collection. */
export const MAX_DOCUMENT_BYTES = 16 * FILLED_PIECE_BYTES;

function pieceFields(pieces: number): string[] {
  return Array.from({ length: pieces }, (_, i) => (i === 0 ? 'document' : `document_${i + 1}`));
}

/** The fields of the collection that has an entity for each live row. */
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

type RowForm = Pick<PublicationPlan, 'pieces' | 'keyColumns'>;

/** The entity of a row. `pieces` must be enough for its document. */
export function entityOf(
  { row, vector, document, id, lookups, keys }: PublishedRow,
  { pieces, keyColumns = [] }: RowForm,
): Entity {
  const parts = splitText(document);
  return {
    [ROW_FIELD]: row,
    [VECTOR_FIELD]: Array.from(vector),
    // The mark tells an empty id from none.
    [ID_FIELD]: id === null ? '' : `=${id}`,
    ...Object.fromEntries(LOOKUPS.map((by) => [lookupField(by), lookupHash(by, lookups[by])])),
    ...Object.fromEntries(pieceFields(pieces).map((name, i) => [name, parts[i] ?? ''])),
    ...Object.fromEntries(keyColumns.map((column, i) => [columnField(column), keys[i]!])),
  };
}

export function documentOf(entity: Entity, pieces: number): string {
  return pieceFields(pieces)
    .map((name) => entity[name])
    .join('');
}

/** The id of an entity as text, null for a passage without one. */
export function idOf(entity: Entity): string | null {
  const marked = String(entity[ID_FIELD]);
  return marked === '' ? null : marked.slice(1);
}

export function keysOf(entity: Entity, keyColumns: readonly number[]): string[] {
  return keyColumns.map((column) => String(entity[columnField(column)]));
}

export function milvusPassages(client: MilvusClient, published: PublishedCollection, pieces: number): PassageReader {
  const { collection } = published;
  const read = (rows: readonly number[], fields: readonly string[], signal?: AbortSignal): Promise<readonly Entity[]> =>
    readRows(client, collection, { rows, fields: [ROW_FIELD, ...fields], signal });
  return {
    documents: async (rows, signal) => {
      const entities = await read(rows, pieceFields(pieces), signal);
      return entities.map((entity) => documentOf(entity, pieces));
    },
    ids: async (rows, signal) => (await read(rows, [ID_FIELD], signal)).map(idOf),
    lookUp: async (by, hashes, signal) => {
      const field = lookupField(by);
      const filter = `${field} in [${hashes.join(',')}]`;
      const fields = [ROW_FIELD, field];
      const query = () => client.query(collection, { filter, fields, consistency: 'Bounded', signal });
      // That a key does not exist is an answer, too, so all rows must be searched.
      const found = await fromAllRows(client, published, query, signal);
      return found.map((entity) => ({ row: Number(entity[ROW_FIELD]), hash: String(entity[field]) }));
    },
  };
}

/** Divides a text into pieces of at most PIECE_BYTES bytes of UTF-8, between characters. */
function splitText(text: string): string[] {
  if (text.length * 3 <= PIECE_BYTES) return [text];
  const bytes = Buffer.from(text);
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    let end = Math.min(bytes.length, at + PIECE_BYTES);
    // A byte 10xxxxxx continues a character.
    while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end--;
    pieces.push(bytes.toString('utf8', at, end));
    at = end;
  }
  return pieces;
}

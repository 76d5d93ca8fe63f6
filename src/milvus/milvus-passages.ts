import type { PassageReader } from '../published/stored-passages.ts';
import { readRows } from './milvus-candidates.ts';
import type { Entity, MilvusClient } from './milvus-client.ts';
import { documentOf, ID_FIELDS, idOf, lookupField, pieceFields, ROW_FIELD } from './published-rows.ts';

/** @param pieces fields that a document is divided into. */
export function milvusPassages(client: MilvusClient, collection: string, pieces: number): PassageReader {
  const read = (rows: readonly number[], fields: readonly string[], signal?: AbortSignal): Promise<readonly Entity[]> =>
    readRows(client, collection, { rows, fields, signal });
  return {
    documents: async (rows, signal) => {
      const entities = await read(rows, [ROW_FIELD, ...pieceFields(pieces)], signal);
      return entities.map((entity) => documentOf(entity, pieces));
    },
    ids: async (rows, signal) => (await read(rows, ID_FIELDS, signal)).map(idOf),
    lookUp: async (by, hashes, signal) => {
      const field = lookupField(by);
      const found = await client.query(collection, {
        filter: `${field} in [${hashes.join(',')}]`,
        fields: [ROW_FIELD, field],
        consistency: 'Bounded',
        signal,
      });
      return found.map((entity) => ({ row: Number(entity[ROW_FIELD]), hash: String(entity[field]) }));
    },
  };
}

import type { PassageReader } from '../published/stored-passages.ts';
import { fromAllRows, type PublishedCollection } from './from-all-rows.ts';
import { readRows } from './milvus-candidates.ts';
import type { Entity, MilvusClient } from './milvus-client.ts';
import { documentOf, ID_FIELDS, idOf, lookupField, pieceFields, ROW_FIELD } from './published-rows.ts';

/** @param pieces fields that a document is divided into. */
export function milvusPassages(client: MilvusClient, published: PublishedCollection, pieces: number): PassageReader {
  const { collection } = published;
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
      const filter = `${field} in [${hashes.join(',')}]`;
      const fields = [ROW_FIELD, field];
      const query = () => client.query(collection, { filter, fields, consistency: 'Bounded', signal });
      // A key that is not found is an answer, so it must have been looked for in all rows.
      const found = await fromAllRows(client, published, query, signal);
      return found.map((entity) => ({ row: Number(entity[ROW_FIELD]), hash: String(entity[field]) }));
    },
  };
}

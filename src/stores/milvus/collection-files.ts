import type { PartStore } from '../published/stored-files.ts';
import type { MilvusClient } from './milvus-client.ts';

/** Milvus demands a vector field; it has no meaning. */
const PART_FIELD = 'part';
const BYTES_FIELD = 'bytes';
const UNUSED_FIELD = 'unused';

export function filesCollection(collection: string): string {
  return `${collection}_trawl`;
}

/** Creates the collection of files, and loads as many copies of it as of the collection of rows. */
export async function createFiles(client: MilvusClient, collection: string, replicas: number): Promise<void> {
  const name = filesCollection(collection);
  await client.create(name, {
    description: `Trawl: record and files of the index in ${collection}`,
    fields: [
      { name: PART_FIELD, type: 'int64', isKey: true },
      { name: BYTES_FIELD, type: 'text' },
      { name: UNUSED_FIELD, type: 'vector', dimension: 2 },
    ],
  });
  await loadFiles(client, collection, replicas);
}

/**
 * Indexes and loads the collection, which may have been left without either by a killed publication. One that is loaded keeps its copies:
 * Milvus refuses to load it with another number.
 */
export async function loadFiles(client: MilvusClient, collection: string, replicas: number): Promise<void> {
  const name = filesCollection(collection);
  if (await client.isLoaded(name)) return;
  await client.createIndex(name, UNUSED_FIELD, { type: 'FLAT', metric: 'L2' });
  await client.load(name, replicas);
}

/** The files of a published collection, in the collection beside it. Their bytes are base64 texts. */
export function collectionFiles(client: MilvusClient, collection: string): PartStore {
  const name = filesCollection(collection);
  return {
    place: `the collection ${name} of Milvus at ${client.server}`,
    write: (parts) =>
      client.upsert(
        name,
        parts.map(({ place, bytes }) => ({
          [PART_FIELD]: place,
          [BYTES_FIELD]: bytes.toString('base64'),
          [UNUSED_FIELD]: [0, 0],
        })),
      ),
    read: async (first, end) => {
      const found = await client.query(name, {
        filter: `${PART_FIELD} >= ${first} and ${PART_FIELD} < ${end}`,
        fields: [PART_FIELD, BYTES_FIELD],
        consistency: 'Strong',
      });
      return found.map((entity) => ({
        place: Number(entity[PART_FIELD]),
        bytes: Buffer.from(String(entity[BYTES_FIELD]), 'base64'),
      }));
    },
  };
}

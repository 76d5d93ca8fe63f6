import { filesName } from '../published/find-publication.ts';
import type { PartStore } from '../published/stored-files.ts';
import type { IndexFacts, OpenSearchClient } from './opensearch-client.ts';

const PART_FIELD = 'part';
const BYTES_FIELD = 'bytes';

export function hasFileFields({ mappings }: IndexFacts): boolean {
  return mappings.properties?.[PART_FIELD]?.type === 'long' && mappings.properties[BYTES_FIELD]?.type === 'binary';
}

export async function createFiles(client: OpenSearchClient, index: string, copies: number): Promise<void> {
  await client.create(filesName(index), {
    settings: { number_of_shards: 1, number_of_replicas: copies - 1 },
    mappings: {
      dynamic: 'strict',
      properties: { [PART_FIELD]: { type: 'long' }, [BYTES_FIELD]: { type: 'binary' } },
    },
  });
}

/** Parts that are read at a time: one has up to 64,000 characters. */
const PARTS_A_READ = 256;

export function indexFiles(client: OpenSearchClient, index: string): PartStore {
  const name = filesName(index);
  return {
    place: `the index ${name} of OpenSearch at ${client.server}`,
    write: (parts) =>
      client.store(
        name,
        'index',
        parts.map(({ place, bytes }) => [place, { [PART_FIELD]: place, [BYTES_FIELD]: bytes.toString('base64') }]),
      ),
    read: async (first, end) => {
      await client.refresh(name);
      const found: { place: number; bytes: Buffer }[] = [];
      for (let next = first; ; next = found.at(-1)!.place + 1) {
        const { hits } = await client.search(name, {
          size: PARTS_A_READ,
          query: { range: { [PART_FIELD]: { gte: next, lt: end } } },
          sort: [{ [PART_FIELD]: 'asc' }],
          _source: [BYTES_FIELD],
        });
        for (const { sort, _source } of hits) {
          found.push({ place: Number(sort?.[0]), bytes: Buffer.from(String(_source?.[BYTES_FIELD]), 'base64') });
        }
        if (hits.length < PARTS_A_READ) return found;
      }
    },
  };
}

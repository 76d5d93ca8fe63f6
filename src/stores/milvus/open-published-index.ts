import { vectorSpace } from '../../index/manifest/vector-space.ts';
import { openStored, type PublishedIndex } from '../published/open-stored.ts';
import { storedRows } from '../published/publication.ts';
import { collectionProblems, type FoundCollection, findCollection } from './check-collection.ts';
import { collectionFiles } from './collection-files.ts';
import { parseMilvusAddress } from './milvus-address.ts';
import { MilvusCandidates } from './milvus-candidates.ts';
import { MilvusClient } from './milvus-client.ts';
import { milvusPassages } from './milvus-passages.ts';
import { PushedFilters } from './pushed-filters.ts';
import { MILVUS_SCORES } from './score-bound.ts';

/** The only index of Milvus that scores every row. */
export const EXACT_INDEX = 'FLAT';

/**
 * Opens an index that `trawl publish` loaded into Milvus: reads its record, checks that all its rows are there and searched completely, and
 * fetches the columns for filters and the deleted rows, which are evaluated here.
 *
 * @throws TrawlError CONFIG_INVALID, STORE_…, or INDEX_…; nothing stays open then.
 */
export async function openPublishedIndex(text: string): Promise<PublishedIndex> {
  const address = parseMilvusAddress(text);
  const client = await MilvusClient.connect(address);
  try {
    const found = await findCollection(client, address);
    const [problem] = await collectionProblems(client, found);
    if (problem !== undefined) throw problem;
    return await openCollection(client, found, () => client.close());
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** Opens a collection whose state was checked. `closeClient` is called after the last of its parts was closed. */
export function openCollection(
  client: MilvusClient,
  { name, publication }: FoundCollection,
  closeClient: () => Promise<void>,
): Promise<PublishedIndex> {
  const { indexType, manifest, pieces } = publication;
  const { dimension, metric } = vectorSpace(manifest)!;
  const published = { collection: name, rows: storedRows(publication) };
  return openStored(
    {
      name,
      publication,
      files: collectionFiles(client, name),
      source: new MilvusCandidates(client, { ...published, dimension, metric, indexType }),
      scores: MILVUS_SCORES,
      scoresEveryRow: indexType === EXACT_INDEX,
      pushed: new PushedFilters(publication.keyColumns ?? []),
      passages: milvusPassages(client, published, pieces),
    },
    closeClient,
  );
}

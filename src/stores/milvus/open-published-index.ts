import { TrawlError } from '../../base/errors.ts';
import { vectorSpace } from '../../index/manifest/index-manifest.ts';
import { type FoundPublication, filesName, findPublication, type StorePlace } from '../published/find-publication.ts';
import { openStored, type PublishedIndex } from '../published/open-stored.ts';
import { storedRows } from '../published/publication.ts';
import { VECTOR_FIELD } from '../published/published-row.ts';
import type { PartStore } from '../published/stored-files.ts';
import { pushedFilters } from './column-keys.ts';
import { type MilvusAddress, parseMilvusAddress, shownAddress } from './milvus-address.ts';
import { MILVUS_METRIC, milvusCandidates, rangeExpression } from './milvus-candidates.ts';
import { type CollectionFacts, MilvusClient } from './milvus-client.ts';
import { milvusPassages } from './published-rows.ts';
import { MILVUS_SCORES } from './score-bound.ts';

/** The only index of Milvus that scores every row. */
export const EXACT_INDEX = 'FLAT';

export type FoundCollection = Pick<FoundPublication<CollectionFacts>, 'name' | 'publication'>;

export function collectionPlace(client: MilvusClient, address: MilvusAddress): StorePlace<CollectionFacts> {
  return {
    kind: 'collection',
    name: address.collection,
    shown: shownAddress(address),
    describe: (name) => client.describe(name),
    holdsFiles: hasFileFields,
    files: (name) => collectionFiles(client, name),
  };
}

export function findCollection(client: MilvusClient, address: MilvusAddress): Promise<FoundCollection> {
  return findPublication(collectionPlace(client, address));
}

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
  closeClient?: () => Promise<void>,
): Promise<PublishedIndex> {
  const { indexType, manifest, pieces, keyColumns = [] } = publication;
  const { dimension, metric } = vectorSpace(manifest)!;
  const published = { collection: name, rows: storedRows(publication) };
  return openStored(
    {
      name,
      publication,
      files: collectionFiles(client, name),
      source: milvusCandidates(client, { ...published, dimension, metric, indexType }),
      scores: MILVUS_SCORES,
      scoresEveryRow: indexType === EXACT_INDEX,
      pushed: pushedFilters(keyColumns),
      passages: milvusPassages(client, published, pieces),
    },
    closeClient,
  );
}

/**
 * The reasons why answers of the collection could be incomplete or unproved. A published collection is loaded, and all its rows are in
 * sealed segments with a finished index: over rows that arrive, Milvus searches with an approximate index even if the collection's is
 * FLAT.
 */
export async function collectionProblems(
  client: MilvusClient,
  { name, publication }: FoundCollection,
): Promise<TrawlError[]> {
  const place = `The collection ${name} of Milvus at ${client.server}`;
  if (!(await client.isLoaded(name)) || !(await client.isLoaded(filesName(name)))) {
    const message = `${place} is not loaded. Run the same \`trawl publish\` again, which loads it.`;
    return [new TrawlError('STORE_FAILED', message, { details: { retryAfterS: 10 } })];
  }
  const problems: TrawlError[] = [];
  const differs = (difference: string): void => {
    const message = `${place} has ${difference}. Publish the index again, into another collection.`;
    problems.push(new TrawlError('STORE_DIFFERS', message));
  };
  const index = (await client.indexes(name)).get(VECTOR_FIELD);
  const metric = MILVUS_METRIC[vectorSpace(publication.manifest)!.metric];
  if (index?.type !== publication.indexType || index.metric !== metric) {
    const found = index === undefined ? 'no index over the vectors' : `the index ${index.type} with ${index.metric}`;
    differs(`${found}, but was published with ${publication.indexType} and ${metric}`);
  }
  const unsealed = (await client.segments(name)).filter(({ isSealed }) => !isSealed);
  const unsealedRows = unsealed.reduce((sum, { rows }) => sum + rows, 0);
  if (unsealedRows > 0) {
    problems.push(
      new TrawlError(
        'STORE_FAILED',
        `${place} has ${unsealedRows} rows that are not sealed, which Milvus may search approximately. Wait until they are flushed, and write nothing into it.`,
        { details: { retryAfterS: 30 } },
      ),
    );
  }
  const expected = storedRows(publication);
  const found = await client.countOf(name, { filter: '', consistency: 'Strong' });
  if (found !== expected) differs(`${found} rows, but ${expected} were published`);
  return problems;
}

const PART_FIELD = 'part';
const BYTES_FIELD = 'bytes';
/** Milvus requires a vector field. This one has no meaning. */
const UNUSED_FIELD = 'unused';

function hasFileFields({ fields }: CollectionFacts): boolean {
  return [PART_FIELD, BYTES_FIELD, UNUSED_FIELD].every((field) => fields.some(({ name }) => name === field));
}

/** Creates the collection of files, and loads as many copies of it as of the collection of rows. */
export async function createFiles(client: MilvusClient, collection: string, replicas: number): Promise<void> {
  const name = filesName(collection);
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
 * Indexes and loads the collection: a killed publication may have done neither. A loaded collection keeps its number of copies, because
 * Milvus refuses to load it with another number.
 */
export async function loadFiles(client: MilvusClient, collection: string, replicas: number): Promise<void> {
  const name = filesName(collection);
  if (await client.isLoaded(name)) return;
  await client.createIndex(name, UNUSED_FIELD, { type: 'FLAT', metric: 'L2', params: {} });
  await client.load(name, replicas);
}

/** The files of a published collection, in the collection beside it. Their bytes are base64 texts. */
function collectionFiles(client: MilvusClient, collection: string): PartStore {
  const name = filesName(collection);
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
        filter: rangeExpression(PART_FIELD, first, end),
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

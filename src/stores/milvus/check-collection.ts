import { TrawlError } from '../../base/errors.ts';
import { vectorSpace } from '../../index/manifest/vector-space.ts';
import { type Publication, readPublication, storedRows } from '../published/publication.ts';
import { collectionFiles, filesCollection } from './collection-files.ts';
import { type MilvusAddress, shownAddress } from './milvus-address.ts';
import { MILVUS_METRIC } from './milvus-candidates.ts';
import type { MilvusClient } from './milvus-client.ts';
import { VECTOR_FIELD } from './published-rows.ts';

/** A published index as it is in Milvus. */
export interface FoundCollection {
  /** The collection's own name, which an alias is resolved to: a swap must not mix two collections. */
  readonly name: string;
  readonly publication: Publication;
}

/** @throws TrawlError INDEX_NOT_FOUND, INDEX_FILE_FOREIGN, or an error of `readPublication`. */
export async function findCollection(client: MilvusClient, address: MilvusAddress): Promise<FoundCollection> {
  const shown = shownAddress(address);
  const facts = await client.describe(address.collection);
  if (facts === undefined) {
    throw new TrawlError(
      'INDEX_NOT_FOUND',
      `${shown}: there is no such collection or alias. Publish an index with \`trawl publish INDEX ${shown}\`.`,
    );
  }
  if ((await client.describe(filesCollection(facts.name))) === undefined) {
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${shown}: the collection ${facts.name} was not made by \`trawl publish\`: ${filesCollection(facts.name)} is missing.`,
    );
  }
  const publication = await readPublication(collectionFiles(client, facts.name));
  if (publication === undefined) {
    throw new TrawlError(
      'INDEX_NOT_FOUND',
      `${shown}: the publication into ${facts.name} is unfinished. Run the same \`trawl publish\` again; it continues.`,
    );
  }
  return { name: facts.name, publication };
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
  const problems: TrawlError[] = [];
  const place = `The collection ${name} of Milvus at ${client.server}`;
  if (!(await client.isLoaded(name)) || !(await client.isLoaded(filesCollection(name)))) {
    const message = `${place} is not loaded. Run the same \`trawl publish\` again, which loads it.`;
    return [new TrawlError('STORE_FAILED', message, { details: { retryAfterS: 10 } })];
  }
  const index = (await client.indexes(name)).get(VECTOR_FIELD);
  const { metric } = vectorSpace(publication.manifest)!;
  if (index === undefined || index.type !== publication.indexType || index.metric !== MILVUS_METRIC[metric]) {
    const found = index === undefined ? 'no index over the vectors' : `the index ${index.type} with ${index.metric}`;
    problems.push(
      new TrawlError(
        'STORE_DIFFERS',
        `${place} has ${found}, but was published with ${publication.indexType} and ${MILVUS_METRIC[metric]}. Publish the index again, into another collection.`,
      ),
    );
  }
  const unsealed = (await client.segments(name)).filter(({ rows, isSealed }) => !isSealed && rows > 0);
  if (unsealed.length > 0) {
    const rows = unsealed.reduce((sum, segment) => sum + segment.rows, 0);
    problems.push(
      new TrawlError(
        'STORE_FAILED',
        `${place} has ${rows} rows that are not sealed, which Milvus may search approximately. Wait until they are flushed, and write nothing into it.`,
        { details: { retryAfterS: 30 } },
      ),
    );
  }
  const expected = storedRows(publication);
  const found = await client.countOf(name, { filter: '', consistency: 'Strong' });
  if (found !== expected) {
    problems.push(
      new TrawlError(
        'STORE_DIFFERS',
        `${place} has ${found} rows, but ${expected} were published. Publish the index again, into another collection.`,
      ),
    );
  }
  return problems;
}

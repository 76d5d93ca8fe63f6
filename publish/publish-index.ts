import { setTimeout as pause } from 'node:timers/promises';
import { throwIfCancelled } from '../src/abort.ts';
import { TrawlError } from '../src/errors.ts';
import type { IndexManifest } from '../src/manifest/index-manifest.ts';
import { requireVectors } from '../src/manifest/vector-space.ts';
import type { Metric } from '../src/metric.ts';
import { collectionProblems } from '../src/milvus/check-collection.ts';
import { collectionFiles, createFiles, filesCollection, loadFiles } from '../src/milvus/collection-files.ts';
import { type MilvusAddress, parseMilvusAddress, shownAddress } from '../src/milvus/milvus-address.ts';
import { MILVUS_METRIC } from '../src/milvus/milvus-candidates.ts';
import { MilvusClient } from '../src/milvus/milvus-client.ts';
import { openCollection } from '../src/milvus/open-published-index.ts';
import {
  entityOf,
  lookupField,
  MAX_DOCUMENT_BYTES,
  piecesFor,
  rowFields,
  VECTOR_FIELD,
} from '../src/milvus/published-rows.ts';
import { LOOKUPS } from '../src/passages/schema.ts';
import { ContentSum } from '../src/published/content-sum.ts';
import {
  type Publication,
  type PublicationPlan,
  planOf,
  storedRows,
  writeProgress,
  writePublication,
} from '../src/published/publication.ts';
import { type IndexDirectory, openIndexDirectory } from '../src/retrieval/opening/index-directory.ts';
import { checkedNorm } from './checked-norm.ts';
import { checkFields, checkSameIndex, heldCollection } from './held-collection.ts';
import { LocalRows } from './local-rows.ts';
import { portable, storeFiles } from './store-files.ts';
import { type RowStore, storeRows } from './store-rows.ts';
import { type VerifiedPublication, verifyPublication } from './verify-publication.ts';

/** The indexes of Milvus that can be chosen. */
export const INDEX_TYPES = ['FLAT', 'HNSW'] as const;
export type IndexType = (typeof INDEX_TYPES)[number];

/** The settings of `trawl publish` without options, and of a build into Milvus. */
export const PUBLISH_DEFAULTS = { indexType: 'FLAT', replicas: 1, channels: 1, sample: 64 } as const;

/** HNSW's usual values. */
const INDEX_PARAMETERS: Readonly<Record<IndexType, Readonly<Record<string, number>>>> = {
  FLAT: {},
  HNSW: { M: 16, efConstruction: 200 },
};

/** Bytes of a call, less than Kafka's default limit of a message (1 MB). */
const CALL_BYTES = 700_000;
const CALL_ROWS = 500;

/** Pause between questions for the state of an index, in milliseconds. */
const POLL_MS = 500;

export interface PublishOptions {
  readonly indexType: IndexType;
  /** Copies of the data on query nodes. */
  readonly replicas: number;
  /** Channels that Milvus divides the rows into. */
  readonly channels: number;
  /** A name that is made to name the collection once it is complete. */
  readonly alias: string | undefined;
  /** Rows and questions that are compared at the end. */
  readonly sample: number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: PublishProgress) => void;
}

export interface PublishProgress {
  readonly step: 'reading the passages' | 'storing rows' | 'indexing' | 'loading' | 'storing files' | 'comparing';
  readonly done: number;
  readonly total: number;
}

export interface PublishReport {
  readonly address: string;
  readonly collection: string;
  /** Rows in the collection. */
  readonly rows: number;
  /** Whether an earlier run had stored rows. */
  readonly resumed: boolean;
  /** Whether the collection was complete already. */
  readonly wasComplete: boolean;
  readonly alias: string | null;
  readonly verified: VerifiedPublication;
}

/**
 * Loads an index into a collection of Milvus. A killed run is resumed by the next one; a complete collection is only checked. The record
 * that makes the collection an index is written last, after everything was compared; the alias is moved after that.
 *
 * @throws TrawlError INDEX_EXISTS if the collection is of another index or of something else; STORE_…, INDEX_…, NOT_SUPPORTED.
 */
export async function publishIndex(folder: string, place: string, options: PublishOptions): Promise<PublishReport> {
  const address = parseMilvusAddress(place);
  const directory = openIndexDirectory(folder);
  const { metric } = requireVectors(folder, directory.manifest);
  const local = new LocalRows(directory);
  let client: MilvusClient | undefined;
  try {
    client = await MilvusClient.connect(address);
    const manifest = portable(directory);
    const { plan, complete, resumed } = await begin(client, address, { manifest, local, options });
    const { collection } = address;
    const publication =
      complete ?? (await store(client, address, { plan, manifest, metric, directory, local, options }));
    const found = { name: collection, publication };
    await loadAll(client, collection, options);
    const [problem] = await collectionProblems(client, found);
    if (problem !== undefined) throw problem;
    options.onProgress({ step: 'comparing', done: 0, total: 1 });
    const published = await openCollection(client, found, async () => undefined);
    let verified: VerifiedPublication;
    try {
      verified = await verifyPublication(published, { directory, local, sample: options.sample });
    } finally {
      await published.close();
    }
    throwIfCancelled(options.signal);
    if (complete === undefined) {
      await writePublication(collectionFiles(client, collection), publication);
      await client.flush(filesCollection(collection));
    }
    if (options.alias !== undefined) await client.setAlias(options.alias, collection);
    return {
      address: shownAddress(address),
      collection,
      rows: storedRows(publication),
      resumed,
      wasComplete: complete !== undefined,
      alias: options.alias ?? null,
      verified,
    };
  } finally {
    local.close();
    await client?.close();
  }
}

/**
 * Makes the collections, or finds what an earlier run left.
 *
 * @throws TrawlError INDEX_EXISTS for a collection of another index or of something else, NOT_SUPPORTED for documents that are too long.
 */
async function begin(
  client: MilvusClient,
  address: MilvusAddress,
  { manifest, local, options }: { manifest: IndexManifest; local: LocalRows; options: PublishOptions },
): Promise<{ plan: PublicationPlan; complete: Publication | undefined; resumed: boolean }> {
  const { collection } = address;
  const { indexType } = options;
  const held = await heldCollection(client, address, options.replicas);
  const { complete, progress } = held;
  const earlier = complete ?? progress;
  // The pieces of an earlier run are enough for the same index.
  const pieces = earlier?.pieces ?? longestIn(local, options);
  const keyColumns = earlier === undefined ? await local.singleColumns() : earlier.keyColumns;
  const plan = planOf(manifest, { indexType, pieces, ...(keyColumns === undefined ? {} : { keyColumns }) });
  checkSameIndex(held, address, plan);
  const fields = rowFields(manifest.dimension, plan);
  checkFields(held, address, fields);
  // Files alone are left of a collection that was dropped, or of a run killed before it made the collection.
  if (held.fields === undefined && held.hasFiles) await client.drop(filesCollection(collection));
  if (held.fields === undefined) {
    await createFiles(client, collection, options.replicas);
    const description = `Trawl index, generation ${manifest.generation}`;
    await client.create(collection, { description, fields, shards: options.channels });
  }
  // Written before the first row, so that a collection with rows always says of which index they are.
  if (earlier === undefined) {
    await writeProgress(collectionFiles(client, collection), {
      ...plan,
      nextRow: 0,
      largestNorm: 0,
      contentSum: new ContentSum().hex,
    });
  }
  return { plan, complete, resumed: (progress?.nextRow ?? 0) > 0 };
}

function longestIn(local: LocalRows, { onProgress }: PublishOptions): number {
  onProgress({ step: 'reading the passages', done: 0, total: 1 });
  const bytes = local.longestDocument();
  if (bytes <= MAX_DOCUMENT_BYTES) return piecesFor(bytes);
  throw new TrawlError(
    'NOT_SUPPORTED',
    `The longest document has ${bytes} bytes; a collection of Milvus can have up to ${MAX_DOCUMENT_BYTES}. Split the corpus with \`trawl prepare\`.`,
  );
}

/** Stores rows and files, and makes the indexes. */
async function store(
  client: MilvusClient,
  { collection }: MilvusAddress,
  {
    plan,
    manifest,
    metric,
    directory,
    local,
    options,
  }: {
    plan: PublicationPlan;
    manifest: IndexManifest;
    metric: Metric;
    directory: IndexDirectory;
    local: LocalRows;
    options: PublishOptions;
  },
): Promise<Publication> {
  const { signal, onProgress, indexType } = options;
  const files = collectionFiles(client, collection);
  const rows: RowStore = {
    files,
    callBytes: CALL_BYTES,
    callRows: CALL_ROWS,
    normOf: (row, vector) => checkedNorm(row, vector, metric),
    write: (some) =>
      client.upsert(
        collection,
        some.map((row) => entityOf(row, plan)),
      ),
  };
  const contents = await storeRows(rows, local, {
    plan,
    dimension: manifest.dimension,
    signal,
    onProgress: (done) => onProgress({ step: 'storing rows', done, total: local.rows }),
  });
  const stored = await storeFiles(files, directory, {
    signal,
    onProgress: (done, total) => onProgress({ step: 'storing files', done, total }),
  });
  await client.flush(filesCollection(collection));
  // Before the collection is loaded: over rows that are not sealed and indexed, Milvus may search approximately.
  await client.flush(collection);
  await client.createIndex(collection, VECTOR_FIELD, {
    type: indexType,
    metric: MILVUS_METRIC[metric],
    params: INDEX_PARAMETERS[indexType],
  });
  for (const by of LOOKUPS) await client.createIndex(collection, lookupField(by), { type: 'STL_SORT' });
  await untilIndexed(client, collection, options);
  return { ...plan, manifest, ...contents, lookups: local.lookups(), ...stored };
}

/** Waits until every index has all rows. */
async function untilIndexed(
  client: MilvusClient,
  collection: string,
  { signal, onProgress }: PublishOptions,
): Promise<void> {
  for (;;) {
    throwIfCancelled(signal);
    const indexes = [...(await client.indexes(collection)).values()];
    const failure = indexes.find((index) => index.failure !== '')?.failure;
    if (failure !== undefined) {
      throw new TrawlError('STORE_FAILED', `Milvus at ${client.server} could not make an index: ${failure}`);
    }
    const pending = indexes.reduce((sum, { pendingRows }) => sum + pendingRows, 0);
    const done = indexes.reduce((sum, { rows }) => sum + rows, 0);
    onProgress({ step: 'indexing', done, total: done + pending });
    if (pending === 0) return;
    await pause(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function loadAll(
  client: MilvusClient,
  collection: string,
  { replicas, onProgress }: PublishOptions,
): Promise<void> {
  onProgress({ step: 'loading', done: 0, total: 1 });
  await loadFiles(client, collection, replicas);
  await client.load(collection, replicas);
}

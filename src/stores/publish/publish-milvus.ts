import { setTimeout as pause } from 'node:timers/promises';
import { throwIfCancelled } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { LOOKUPS } from '../../index/passages/schema.ts';
import { collectionProblems } from '../milvus/check-collection.ts';
import { collectionFiles, createFiles, filesCollection, loadFiles } from '../milvus/collection-files.ts';
import { type MilvusAddress, parseMilvusAddress, shownAddress } from '../milvus/milvus-address.ts';
import { MILVUS_METRIC } from '../milvus/milvus-candidates.ts';
import { MilvusClient } from '../milvus/milvus-client.ts';
import { openCollection } from '../milvus/open-published-index.ts';
import {
  entityOf,
  lookupField,
  MAX_DOCUMENT_BYTES,
  piecesFor,
  rowFields,
  VECTOR_FIELD,
} from '../milvus/published-rows.ts';
import { type Publication, type PublicationPlan, planOf, writePublication } from '../published/publication.ts';
import { checkedNorm } from './checked-norm.ts';
import { checkFields, checkSameIndex, heldCollection } from './held-collection.ts';
import type { LocalRows } from './local-rows.ts';
import {
  type BegunPublication,
  type PublishOptions,
  type PublishReport,
  type PublishSource,
  publishIndex,
} from './publish-index.ts';
import { storeFiles } from './store-files.ts';
import { type RowStore, storeRows } from './store-rows.ts';

/** The indexes of Milvus that can be chosen. */
export const INDEX_TYPES = ['FLAT', 'HNSW'] as const;
type IndexType = (typeof INDEX_TYPES)[number];

/** The settings of `trawl publish` without options, and of a build into Milvus. */
export const MILVUS_DEFAULTS = { indexType: 'FLAT', replicas: 1, channels: 1, sample: 64 } as const;

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

export interface PublishMilvusOptions extends PublishOptions {
  readonly indexType: IndexType;
  /** Copies of the data on query nodes. */
  readonly replicas: number;
  /** Channels that Milvus divides the rows into. */
  readonly channels: number;
}

/** Loads an index into a collection of Milvus, as `publishIndex` says. */
export async function publishToMilvus(
  folder: string,
  place: string,
  options: PublishMilvusOptions,
): Promise<PublishReport> {
  const address = parseMilvusAddress(place);
  const { collection } = address;
  return publishIndex(folder, options, async (source) => {
    const client = await MilvusClient.connect(address);
    return {
      address: shownAddress(address),
      collection,
      begin: () => begin(client, address, source, options),
      store: (plan) => store(client, collection, { ...source, plan }, options),
      check: async (publication) => {
        await loadAll(client, collection, options);
        const [problem] = await collectionProblems(client, { name: collection, publication });
        if (problem !== undefined) throw problem;
      },
      open: (publication) => openCollection(client, { name: collection, publication }, async () => undefined),
      complete: async (publication) => {
        await writePublication(collectionFiles(client, collection), publication);
        await client.flush(filesCollection(collection));
      },
      setAlias: (alias) => client.setAlias(alias, collection),
      close: () => client.close(),
    };
  });
}

async function begin(
  client: MilvusClient,
  address: MilvusAddress,
  { manifest, local }: PublishSource,
  options: PublishMilvusOptions,
): Promise<BegunPublication> {
  const { collection } = address;
  const { indexType } = options;
  const held = await heldCollection(client, address, options.replicas);
  const { complete, progress } = held;
  const earlier = complete ?? progress;
  // The pieces of an earlier run are enough for the same index.
  const pieces = earlier?.pieces ?? longestIn(local, options);
  const keyColumns = earlier === undefined ? await local.singleColumns() : earlier.keyColumns;
  const plan = planOf(manifest, { indexType, pieces, keyColumns });
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
  return { plan, complete, resumed: (progress?.nextRow ?? 0) > 0 };
}

function longestIn(local: LocalRows, { onProgress }: PublishMilvusOptions): number {
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
  collection: string,
  { plan, manifest, metric, directory, local }: PublishSource & { readonly plan: PublicationPlan },
  options: PublishMilvusOptions,
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
  { signal, onProgress }: PublishMilvusOptions,
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
  { replicas, onProgress }: PublishMilvusOptions,
): Promise<void> {
  onProgress({ step: 'loading', done: 0, total: 1 });
  await loadFiles(client, collection, replicas);
  await client.load(collection, replicas);
}

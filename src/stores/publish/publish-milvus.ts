import { setTimeout as pause } from 'node:timers/promises';
import { throwIfCancelled } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import type { Metric } from '../../engine/metric.ts';
import { LOOKUPS } from '../../index/passages/schema.ts';
import { parseMilvusAddress } from '../milvus/milvus-address.ts';
import { MILVUS_METRIC } from '../milvus/milvus-candidates.ts';
import { type CollectionFacts, type FieldSpec, MilvusClient } from '../milvus/milvus-client.ts';
import {
  collectionPlace,
  collectionProblems,
  createFiles,
  loadFiles,
  openCollection,
} from '../milvus/open-published-index.ts';
import { entityOf, FILLED_PIECE_BYTES, MAX_DOCUMENT_BYTES, rowFields } from '../milvus/published-rows.ts';
import { LARGEST_NORM } from '../milvus/score-bound.ts';
import {
  checkSameIndex,
  filesName,
  type HeldPlace,
  type NamedPlace,
  occupiedPlace,
} from '../published/find-publication.ts';
import type { PublicationPlan } from '../published/publication.ts';
import { lookupField, upperNorm, VECTOR_FIELD } from '../published/published-row.ts';
import { type PublishOptions, type PublishReport, publishIndex } from './publish-index.ts';

export const INDEX_TYPES = ['FLAT', 'HNSW'] as const;
type IndexType = (typeof INDEX_TYPES)[number];

/** The settings of `trawl publish` without options, and of a build into Milvus. */
export const MILVUS_DEFAULTS = { indexType: 'FLAT', replicas: 1, channels: 1, sample: 64 } as const;

const INDEX_PARAMETERS: Readonly<Record<IndexType, Readonly<Record<string, number>>>> = {
  FLAT: {},
  HNSW: { M: 16, efConstruction: 200 },
};

/** Pause between questions for the state of an index, in milliseconds. */
const POLL_MS = 500;

export interface PublishMilvusOptions extends PublishOptions {
  readonly indexType: IndexType;
  readonly replicas: number;
  /** Channels that Milvus divides the rows into. */
  readonly channels: number;
}

/** Loads an index into a collection of Milvus, as `publishIndex` does. */
export function publishToMilvus(folder: string, text: string, options: PublishMilvusOptions): Promise<PublishReport> {
  const address = parseMilvusAddress(text);
  const { collection } = address;
  const { indexType, replicas, channels, onProgress } = options;
  return publishIndex<CollectionFacts>(folder, options, async ({ manifest, metric, local }) => {
    const client = await MilvusClient.connect(address);
    const place = collectionPlace(client, address);
    return {
      place,
      documentBytes: { most: MAX_DOCUMENT_BYTES, aPiece: FILLED_PIECE_BYTES },
      prepareFiles: () => loadFiles(client, collection, replicas),
      planned: async (earlier) => ({
        indexType,
        keyColumns: earlier === undefined ? await local.singleColumns() : earlier.keyColumns,
      }),
      checkHeld: (held, plan) => {
        checkSameCollection(held, place, plan);
        checkFields(held, place, rowFields(manifest.dimension, plan));
      },
      create: async (plan) => {
        await createFiles(client, collection, replicas);
        const description = `Trawl index, generation ${manifest.generation}`;
        await client.create(collection, { description, fields: rowFields(manifest.dimension, plan), shards: channels });
      },
      drop: (name) => client.drop(name),
      rowStore: (plan) => ({
        // Less than Kafka's default limit of a message (1 MB).
        callBytes: 700_000,
        callRows: 500,
        normOf: (row, vector) => checkedNorm(row, vector, metric),
        write: (rows) =>
          client.upsert(
            collection,
            rows.map((row) => entityOf(row, plan)),
          ),
      }),
      finish: async () => {
        await client.flush(filesName(collection));
        // Before the collection is loaded: over rows that are not sealed and indexed, Milvus may search approximately.
        await client.flush(collection);
        await client.createIndex(collection, VECTOR_FIELD, {
          type: indexType,
          metric: MILVUS_METRIC[metric],
          params: INDEX_PARAMETERS[indexType],
        });
        for (const by of LOOKUPS) await client.createIndex(collection, lookupField(by), { type: 'STL_SORT' });
        await untilIndexed(client, collection, options);
        return {};
      },
      problems: async (publication) => {
        onProgress({ step: 'loading', done: 0, total: 1 });
        await loadFiles(client, collection, replicas);
        await client.load(collection, replicas);
        return collectionProblems(client, { name: collection, publication });
      },
      open: (publication) => openCollection(client, { name: collection, publication }),
      flushRecord: () => client.flush(filesName(collection)),
      setAlias: (alias) => client.setAlias(alias, collection),
      close: () => client.close(),
    };
  });
}

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

/** The norm, rounded up. @throws TrawlError NOT_SUPPORTED if Milvus could not score the vector in float32. @internal Exported for tests. */
export function checkedNorm(row: number, vector: Float32Array, metric: Metric): number {
  const norm = upperNorm(vector);
  if (norm === 0 && metric === 'cosine') {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `Row ${row} is a zero vector, whose cosine Milvus does not define. Remove its passage.`,
    );
  }
  if (norm > LARGEST_NORM || (norm < 1 / LARGEST_NORM && norm > 0)) {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `Row ${row} has a norm of ${norm}; in Milvus, norms from ${1 / LARGEST_NORM} to ${LARGEST_NORM} can be scored in float32. Scale the vectors.`,
    );
  }
  return norm;
}

/** @throws TrawlError INDEX_EXISTS if the collection has rows of another index, or has another index over the vectors. */
export function checkSameCollection(
  held: HeldPlace<CollectionFacts>,
  place: NamedPlace,
  { fingerprint, indexType }: Pick<PublicationPlan, 'fingerprint' | 'indexType'>,
): void {
  const earlier = checkSameIndex(held, place, fingerprint);
  if (earlier !== undefined && earlier.indexType !== indexType) {
    throw occupiedPlace(place, `was published with --index-type ${earlier.indexType}, not ${indexType}`);
  }
}

const TYPES: Readonly<Record<FieldSpec['type'], string>> = { int64: 'Int64', text: 'VarChar', vector: 'FloatVector' };

function fieldText(
  type: string,
  { name, isKey = false, dimension }: Omit<CollectionFacts['fields'][number] | FieldSpec, 'type'>,
): string {
  return `${name} (${type}${dimension === undefined ? '' : ` of ${dimension}`}${isKey ? ', key' : ''})`;
}

/**
 * @throws TrawlError INDEX_EXISTS if the collection has other fields than the index needs: a publication of another index, killed before
 * its first record, leaves such a collection. @internal Exported for tests.
 */
export function checkFields(
  { facts }: HeldPlace<CollectionFacts>,
  place: NamedPlace,
  expected: readonly FieldSpec[],
): void {
  if (facts === undefined) return;
  const found = facts.fields.map((field) => fieldText(field.type, field));
  const wanted = expected.map((field) => fieldText(TYPES[field.type], field));
  const differences = [
    ...wanted.filter((field) => !found.includes(field)).map((field) => `no ${field}`),
    ...found.filter((field) => !wanted.includes(field)).map((field) => `the field ${field}`),
  ];
  if (differences.length > 0)
    throw occupiedPlace(place, `has other fields than this index needs: ${differences.slice(0, 4).join(', ')}`);
}

import { TrawlError } from '../../base/errors.ts';
import { type FailedAttempt, storeAttempts } from '../published/store-attempts.ts';
import type { MilvusAddress } from './milvus-address.ts';
import { credentialsAdvice, credentialsFor } from './milvus-credentials.ts';
import {
  type CollectionFacts,
  type FieldSpec,
  foundField,
  type IndexFacts,
  MAX_TEXT_BYTES,
  type QueryNodeFacts,
  type SegmentFacts,
} from './milvus-facts.ts';
import { type AskedServer, checkStatus, MilvusFailure, missing, storeError } from './milvus-failure.ts';
import { loadSdk, type Sdk, type SdkClient, type SdkField, type SdkNode, type SdkReply } from './milvus-sdk.ts';

/** Time limit of a read, in milliseconds. */
const READ_MS = 15_000;
/** Time limit of a write or a change of a collection, in milliseconds. */
const WRITE_MS = 120_000;

/**
 * In milliseconds. The package's own limits are two minutes, for which a restarted Milvus would stay unused, and half a minute, for which
 * one whose name has another address would.
 */
const RECONNECT = {
  'grpc.initial_reconnect_backoff_ms': 200,
  'grpc.max_reconnect_backoff_ms': 2_000,
  'grpc.dns_min_time_between_resolutions_ms': 2_000,
};

/** `Strong`: all that was written before. `Bounded`: what was written until a few seconds ago. `Eventually`: what is loaded. */
type Consistency = 'Strong' | 'Bounded' | 'Eventually';

export type Entity = Readonly<Record<string, unknown>>;

interface VectorSearch {
  readonly collection: string;
  readonly field: string;
  /** Row-major. */
  readonly queries: Float32Array;
  readonly dimension: number;
  readonly limit: number;
  readonly metric: string;
  readonly filter: string;
  readonly params: Readonly<Record<string, number>>;
  readonly consistency: Consistency;
  readonly signal?: AbortSignal;
}

interface FoundEntity {
  readonly key: number;
  readonly score: number;
}

interface AskedRows {
  /** An expression of Milvus; empty: all rows. */
  readonly filter: string;
  readonly consistency: Consistency;
  readonly signal?: AbortSignal;
}

/**
 * The only door to Milvus's Node client, an optional package. Every call has a time limit and a bounded number of attempts, reads
 * its status (the package does not throw on errors of Milvus) and fails with STORE_FAILED, STORE_REFUSED or INDEX_NOT_FOUND. Writes
 * are upserts by key, so that an attempt whose reply was lost can be repeated.
 */
export class MilvusClient {
  /** For messages: without user and password. */
  readonly server: string;
  /** What to check after a refusal. */
  readonly advice: string;
  readonly #sdk: Sdk;
  readonly #client: SdkClient;
  readonly #database: string;

  private constructor({ server, advice }: AskedServer, sdk: Sdk, client: SdkClient, database: string) {
    this.server = server;
    this.advice = advice;
    this.#database = database;
    this.#sdk = sdk;
    this.#client = client;
  }

  /**
   * @throws TrawlError CONFIG_INVALID for credentials that cannot be read, PACKAGE_MISSING, STORE_FAILED, STORE_REFUSED, or
   *   INDEX_NOT_FOUND if there is no such database.
   */
  static async connect(address: MilvusAddress): Promise<MilvusClient> {
    const credentials = credentialsFor(address);
    const sdk = await loadSdk();
    const { server, tls, database } = address;
    const connection = new sdk.MilvusClient({
      address: server,
      ssl: tls,
      ...(credentials === undefined ? {} : { username: credentials.user, password: credentials.password }),
      database,
      timeout: READ_MS,
      // Attempts are counted here: the package would also repeat calls after errors of which it knows nothing.
      maxRetries: 0,
      logLevel: 'error',
      channelOptions: RECONNECT,
      // Otherwise the package would connect at once, and a failure would be an unhandled rejection.
      __SKIP_CONNECT__: true,
    });
    const named = { server, advice: credentialsAdvice(address, credentials) };
    const client = new MilvusClient(named, sdk, connection, database);
    try {
      await client.version();
      return client;
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  async version(): Promise<string> {
    const reply = await this.#call('report its version', () => this.#client.getVersion());
    return String(reply.version);
  }

  /** Undefined if there is no such collection. @throws TrawlError INDEX_NOT_FOUND if there is no such database. */
  async describe(collection: string): Promise<CollectionFacts | undefined> {
    try {
      const reply = await this.#request('describe the collection', 'describeCollection', {
        collection_name: collection,
      });
      return {
        name: String(reply.schema.name || reply.collection_name || collection),
        fields: (reply.schema.fields as SdkField[]).map(foundField),
        aliases: reply.aliases ?? [],
      };
    } catch (error) {
      if (error instanceof TrawlError && error.cause instanceof MilvusFailure) {
        const { isMissing, isDatabaseMissing } = error.cause;
        if (isMissing && !isDatabaseMissing) {
          // Milvus 2.3.5 says that the collection is missing also where its database is.
          await this.#requireDatabase();
          return undefined;
        }
      }
      throw error;
    }
  }

  /** @throws TrawlError INDEX_NOT_FOUND if Milvus lists its databases to this user, and the one of the address is not among them. */
  async #requireDatabase(): Promise<void> {
    let names: readonly string[] | undefined;
    try {
      names = (await this.#request('list the databases', 'listDatabases', {})).db_names;
    } catch (error) {
      if (error instanceof TrawlError && error.code === 'STORE_REFUSED') return;
      throw error;
    }
    if (names === undefined || names.length === 0 || names.includes(this.#database)) return;
    throw missing(this.server, MilvusFailure.ofThrown(new Error(`database not found: ${this.#database}`)));
  }

  async create(
    collection: string,
    { description, fields, shards = 1 }: { description: string; fields: readonly FieldSpec[]; shards?: number },
  ): Promise<void> {
    const { DataType } = this.#sdk;
    await this.#write('create the collection', 'createCollection', {
      collection_name: collection,
      description,
      shards_num: shards,
      enable_dynamic_field: false,
      fields: fields.map(({ name, type, isKey, dimension }) => ({
        name,
        ...(isKey === true ? { is_primary_key: true, autoID: false } : {}),
        ...(type === 'int64' ? { data_type: DataType.Int64 } : {}),
        ...(type === 'text' ? { data_type: DataType.VarChar, max_length: MAX_TEXT_BYTES } : {}),
        ...(type === 'vector' ? { data_type: DataType.FloatVector, dim: dimension } : {}),
      })),
    });
  }

  async createIndex(
    collection: string,
    field: string,
    index: { readonly type: string; readonly metric?: string; readonly params?: Readonly<Record<string, number>> },
  ): Promise<void> {
    await this.#write('create an index', 'createIndex', {
      collection_name: collection,
      field_name: field,
      index_name: field,
      index_type: index.type,
      ...(index.metric === undefined ? {} : { metric_type: index.metric, params: index.params ?? {} }),
    });
  }

  /** The index of each field that has one. */
  async indexes(collection: string): Promise<ReadonlyMap<string, IndexFacts>> {
    const reply = await this.#request('describe the indexes', 'describeIndex', { collection_name: collection });
    const found = new Map<string, IndexFacts>();
    for (const each of reply.index_descriptions) {
      const params = new Map<string, string>(
        (each.params as { key: string; value: string }[]).map(({ key, value }) => [key, value]),
      );
      found.set(each.field_name, {
        type: params.get('index_type') ?? '',
        metric: params.get('metric_type'),
        rows: Number(each.indexed_rows),
        pendingRows: Number(each.pending_index_rows),
        failure: String(each.index_state_fail_reason ?? ''),
      });
    }
    return found;
  }

  async load(collection: string, replicas: number): Promise<void> {
    await this.#write('load the collection', 'loadCollectionSync', {
      collection_name: collection,
      replica_number: replicas,
    });
  }

  async isLoaded(collection: string): Promise<boolean> {
    const reply = await this.#request('report the state of the collection', 'getLoadState', {
      collection_name: collection,
    });
    return reply.state === 'LoadStateLoaded';
  }

  async segments(collection: string): Promise<readonly SegmentFacts[]> {
    const reply = await this.#request('report the segments', 'getQuerySegmentInfo', { collectionName: collection });
    return (reply.infos as { num_rows: string; state: string; nodeIds?: readonly string[] }[]).map(
      ({ num_rows, state, nodeIds = [] }) => ({
        rows: Number(num_rows),
        isSealed: state === 'Sealed',
        nodes: nodeIds.map(Number),
      }),
    );
  }

  /** The query nodes that Milvus has. */
  async queryNodes(): Promise<readonly QueryNodeFacts[]> {
    const request = { request: { metric_type: 'system_info' } };
    const reply = await this.#request('report its nodes', 'getMetric', request);
    const found: QueryNodeFacts[] = [];
    for (const { infos } of (reply.response?.nodes_info ?? []) as readonly { readonly infos?: SdkNode }[]) {
      if (infos?.type !== 'querynode') continue;
      const { memory = 0, memory_usage: used = 0 } = infos.hardware_infos ?? {};
      found.push({ id: Number(infos.id), memoryBytes: memory, usedBytes: used });
    }
    return found;
  }

  async upsert(collection: string, entities: readonly Entity[]): Promise<void> {
    const reply = await this.#write('store rows', 'upsert', { collection_name: collection, fields_data: entities });
    if (Number(reply.upsert_cnt) === entities.length) return;
    const failure = MilvusFailure.ofThrown(new Error(`it stored ${reply.upsert_cnt} of ${entities.length} rows`));
    throw storeError(this, 'store rows', failure);
  }

  async flush(collection: string): Promise<void> {
    await this.#write('flush the collection', 'flushSync', { collection_names: [collection] });
  }

  /** Rows that pass the filter. */
  async countOf(collection: string, asked: AskedRows): Promise<number> {
    const [found] = await this.query(collection, { ...asked, fields: ['count(*)'] });
    return Number(found?.['count(*)']);
  }

  /** All entities that pass the filter, in no order. */
  async query(
    collection: string,
    { filter, fields, consistency, signal }: AskedRows & { readonly fields: readonly string[] },
  ): Promise<readonly Entity[]> {
    const request = { collection_name: collection, filter, output_fields: fields, consistency_level: consistency };
    return (await this.#request('read rows', 'query', request, signal)).data;
  }

  /** The nearest entities of each query, by their keys. */
  async search(search: VectorSearch): Promise<readonly (readonly FoundEntity[])[]> {
    const { queries, dimension, filter, signal } = search;
    const data: number[][] = [];
    for (let at = 0; at < queries.length; at += dimension) data.push(Array.from(queries.subarray(at, at + dimension)));
    const reply = await this.#request(
      'search',
      'search',
      {
        collection_name: search.collection,
        data,
        anns_field: search.field,
        limit: search.limit,
        metric_type: search.metric,
        params: search.params,
        output_fields: ['row'],
        consistency_level: search.consistency,
        ...(filter === '' ? {} : { filter }),
      },
      signal,
    );
    // For one query, some versions of the package return its hits without the list around them.
    const lists = data.length === 1 && !Array.isArray(reply.results[0]) ? [reply.results] : reply.results;
    return (lists as { row: string; score: number }[][]).map((hits) =>
      hits.map(({ row, score }) => ({ key: Number(row), score })),
    );
  }

  /** Points the alias to the collection, also from another collection, in one step. */
  async setAlias(alias: string, collection: string): Promise<void> {
    const facts = await this.describe(alias);
    if (facts !== undefined && facts.name === alias) {
      throw new TrawlError(
        'INDEX_EXISTS',
        `${alias} is a collection of Milvus at ${this.server}, so that it cannot be an alias. Choose another name.`,
      );
    }
    const call = facts === undefined ? 'createAlias' : 'alterAlias';
    await this.#write('set the alias', call, { collection_name: collection, alias });
  }

  async drop(collection: string): Promise<void> {
    await this.#write('drop the collection', 'dropCollection', { collection_name: collection });
  }

  async close(): Promise<void> {
    await this.#client.closeConnection().catch(() => undefined);
  }

  #request(doing: string, name: string, request: object, signal?: AbortSignal): Promise<SdkReply> {
    const readsRows = name === 'query' || name === 'search';
    return this.#call(doing, () => this.#client[name]!({ ...request, timeout: READ_MS }), { signal, readsRows });
  }

  #write(doing: string, name: string, request: object): Promise<SdkReply> {
    return this.#call(doing, () => this.#client[name]!({ ...request, timeout: WRITE_MS }));
  }

  /** Calls, reads the status, and calls again while that may help. */
  async #call(
    doing: string,
    call: () => Promise<SdkReply>,
    { signal, readsRows = false }: { readonly signal?: AbortSignal; readonly readsRows?: boolean } = {},
  ): Promise<SdkReply> {
    const attempt = async (): Promise<SdkReply> => {
      const reply = await call();
      checkStatus(reply, readsRows);
      return reply;
    };
    const failed = (thrown: unknown): FailedAttempt => {
      const failure = MilvusFailure.ofThrown(thrown);
      // A collection that is dropped under a server may be back in a moment, so reads of rows fail with STORE_FAILED.
      if (failure.isMissing && !readsRows) return { error: missing(this.server, failure), isWorthRetrying: false };
      return { error: storeError(this, doing, failure), isWorthRetrying: failure.isWorthRetrying };
    };
    return storeAttempts(attempt, failed, signal);
  }
}

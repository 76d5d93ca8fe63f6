import { TrawlError } from '../../base/errors.ts';
import { PIECE_BYTES, ROW_FIELD, VECTOR_FIELD } from '../published/published-row.ts';
import { type CalledStore, callStore, missingError, StoreFailure, storeError } from '../published/store-calls.ts';
import { credentialsAdvice, credentialsFor, type MilvusAddress } from './milvus-address.ts';
import { checkStatus, failureOf } from './milvus-failure.ts';
import { loadSdk, type Sdk, type SdkClient, type SdkField, type SdkNode, type SdkReply } from './milvus-sdk.ts';

/** Time limit of a read, in milliseconds. */
const READ_MS = 15_000;
/** Time limit of a write or a change of a collection, in milliseconds. */
const WRITE_MS = 120_000;

/** With the package's own limits, a restarted Milvus would stay unused for two minutes, and a moved one for half a minute. */
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
  readonly queries: Float32Array;
  readonly dimension: number;
  readonly limit: number;
  readonly metric: string;
  readonly filter: string;
  readonly params: Readonly<Record<string, number>>;
  readonly signal?: AbortSignal;
}

interface AskedRows {
  /** An expression of Milvus; empty: all rows. */
  readonly filter: string;
  readonly consistency: Consistency;
  readonly signal?: AbortSignal;
}

export interface FieldSpec {
  readonly name: string;
  readonly type: 'int64' | 'text' | 'vector';
  readonly isKey?: boolean;
  /** Of vectors. */
  readonly dimension?: number;
}

export interface CollectionFacts {
  /** The collection's own name, also if an alias was asked for. */
  readonly name: string;
  /** `type`: Int64, VarChar, FloatVector or another of Milvus's names. `dimension`: of vectors. */
  readonly fields: readonly { name: string; type: string; isKey: boolean; dimension: number | undefined }[];
}

interface IndexFacts {
  readonly type: string;
  readonly metric: string | undefined;
  readonly rows: number;
  readonly pendingRows: number;
  readonly failure: string;
}

export interface SegmentFacts {
  readonly rows: number;
  readonly isSealed: boolean;
  readonly nodes: readonly number[];
}

/** A process that holds rows in memory and searches them. */
export interface QueryNodeFacts {
  readonly id: number;
  /** Of the machine that it runs on, in bytes. */
  readonly memoryBytes: number;
  readonly usedBytes: number;
}

/**
 * The only user of Milvus's Node client, an optional package. Every call has a time limit and a bounded number of attempts, reads
 * its status (the package does not throw on errors of Milvus) and fails with STORE_FAILED, STORE_REFUSED or INDEX_NOT_FOUND. Writes
 * are upserts by key, so that an attempt whose reply was lost can be repeated.
 */
export class MilvusClient {
  /** For messages: without user and password. */
  readonly server: string;
  readonly #called: CalledStore;
  readonly #sdk: Sdk;
  readonly #client: SdkClient;
  readonly #database: string;

  private constructor(called: CalledStore, sdk: Sdk, client: SdkClient, database: string) {
    this.server = called.server;
    this.#called = called;
    this.#database = database;
    this.#sdk = sdk;
    this.#client = client;
  }

  /** @throws TrawlError CONFIG_INVALID for unreadable credentials, PACKAGE_MISSING, STORE_…; INDEX_NOT_FOUND without the database. */
  static async connect(address: MilvusAddress): Promise<MilvusClient> {
    const credentials = credentialsFor(address);
    const sdk = await loadSdk();
    const { server, tls, database } = address;
    const connection = new sdk.MilvusClient({
      address: server,
      ssl: tls,
      username: credentials?.user,
      password: credentials?.password,
      database,
      timeout: READ_MS,
      // Attempts are counted here: the package would also repeat calls after errors that it does not know.
      maxRetries: 0,
      logLevel: 'error',
      channelOptions: RECONNECT,
      // Otherwise the package would connect at once, and a failure would be an unhandled rejection.
      __SKIP_CONNECT__: true,
    });
    const called = { store: 'Milvus', server, refusalAdvice: credentialsAdvice(address, credentials) } as const;
    const client = new MilvusClient(called, sdk, connection, database);
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

  /** Undefined if the collection does not exist. @throws TrawlError INDEX_NOT_FOUND if the database does not exist. */
  async describe(collection: string): Promise<CollectionFacts | undefined> {
    try {
      const reply = await this.#request('describe the collection', 'describeCollection', {
        collection_name: collection,
      });
      return {
        name: String(reply.schema.name || reply.collection_name || collection),
        fields: (reply.schema.fields as SdkField[]).map(
          ({ name, data_type: type, is_primary_key: isKey = false, type_params: params }) => {
            const dimension = params?.find(({ key }) => key === 'dim')?.value;
            return { name, type, isKey, dimension: dimension === undefined ? undefined : Number(dimension) };
          },
        ),
      };
    } catch (error) {
      const { cause } = error as Error;
      if (!(cause instanceof StoreFailure) || cause.facts.missing !== 'collection') throw error;
      // Milvus 2.3.5 also says that the collection is missing if its database is.
      await this.#requireDatabase();
      return undefined;
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
    throw missingError(
      this.#called,
      new StoreFailure(`database not found: ${this.#database}`, { missing: 'database' }),
    );
  }

  async create(
    collection: string,
    { description, fields, shards = 1 }: { description: string; fields: readonly FieldSpec[]; shards?: number },
  ): Promise<void> {
    const { DataType } = this.#sdk;
    const types = {
      int64: { data_type: DataType.Int64 },
      text: { data_type: DataType.VarChar, max_length: PIECE_BYTES },
      vector: { data_type: DataType.FloatVector },
    };
    await this.#write('create the collection', 'createCollection', {
      collection_name: collection,
      description,
      shards_num: shards,
      enable_dynamic_field: false,
      fields: fields.map(({ name, type, isKey = false, dimension }) => ({
        name,
        is_primary_key: isKey,
        autoID: false,
        ...types[type],
        ...(type === 'vector' && { dim: dimension }),
      })),
    });
  }

  async createIndex(
    collection: string,
    field: string,
    { type, metric, params }: { type: string; metric?: string; params?: Readonly<Record<string, number>> },
  ): Promise<void> {
    await this.#write('create an index', 'createIndex', {
      collection_name: collection,
      field_name: field,
      index_name: field,
      index_type: type,
      metric_type: metric,
      params,
    });
  }

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
    const failure = new StoreFailure(`it stored ${reply.upsert_cnt} of ${entities.length} rows`);
    throw storeError(this.#called, 'store rows', failure);
  }

  async flush(collection: string): Promise<void> {
    await this.#write('flush the collection', 'flushSync', { collection_names: [collection] });
  }

  async countOf(collection: string, asked: AskedRows): Promise<number> {
    const [found] = await this.query(collection, { ...asked, fields: ['count(*)'] });
    return Number(found?.['count(*)']);
  }

  async query(
    collection: string,
    { filter, fields, consistency, signal }: AskedRows & { readonly fields: readonly string[] },
  ): Promise<readonly Entity[]> {
    const request = { collection_name: collection, filter, output_fields: fields, consistency_level: consistency };
    return (await this.#request('read rows', 'query', request, signal)).data;
  }

  /** The nearest entities of each query, by their keys. */
  async search(
    search: VectorSearch,
  ): Promise<readonly (readonly { readonly key: number; readonly score: number }[])[]> {
    const { queries, dimension, signal } = search;
    const data: number[][] = [];
    for (let at = 0; at < queries.length; at += dimension) data.push(Array.from(queries.subarray(at, at + dimension)));
    const reply = await this.#request(
      'search',
      'search',
      {
        collection_name: search.collection,
        data,
        anns_field: VECTOR_FIELD,
        limit: search.limit,
        metric_type: search.metric,
        params: search.params,
        output_fields: [ROW_FIELD],
        // Nothing is written after the publication, so a few seconds of delay hide nothing (docs/cluster.md).
        consistency_level: 'Bounded',
        filter: search.filter,
      },
      signal,
    );
    // For one query, some versions of the package return its hits without the list around them.
    const lists = data.length === 1 && !Array.isArray(reply.results[0]) ? [reply.results] : reply.results;
    return (lists as { [ROW_FIELD]: string; score: number }[][]).map((hits) =>
      hits.map((hit) => ({ key: Number(hit[ROW_FIELD]), score: hit.score })),
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
    return this.#call(doing, () => this.#client[name]!({ ...request, timeout: READ_MS }), readsRows, signal);
  }

  #write(doing: string, name: string, request: object): Promise<SdkReply> {
    return this.#call(doing, () => this.#client[name]!({ ...request, timeout: WRITE_MS }));
  }

  #call(doing: string, call: () => Promise<SdkReply>, readsRows = false, signal?: AbortSignal): Promise<SdkReply> {
    const attempt = async (): Promise<SdkReply> => {
      const reply = await call();
      checkStatus(reply, readsRows);
      return reply;
    };
    return callStore(this.#called, { doing, attempt, failureOf, readsRows, signal });
  }
}

import { TrawlError } from '../../base/errors.ts';
import { importOptional } from '../../base/system/optional-package.ts';
import { callStore } from '../published/store-calls.ts';
import { credentialsFor, type OpenSearchAddress } from './opensearch-address.ts';
import { failureOf, incomplete, statusFailure } from './opensearch-failure.ts';

const PACKAGE = '@opensearch-project/opensearch';

const REFUSAL_ADVICE =
  "Check its line in TRAWL_OPENSEARCH_CREDENTIALS or the file of TRAWL_OPENSEARCH_CREDENTIALS_FILE, and the user's permissions.";

/** Time limit of a read, in milliseconds. A search reads all rows. */
const READ_MS = 60_000;
/** Time limit of a write or a change of an index, in milliseconds. */
const WRITE_MS = 120_000;

export interface IndexFacts {
  /** The index's own name, if it was asked for by an alias. */
  readonly name: string;
  readonly mappings: { readonly properties?: Readonly<Record<string, Readonly<Record<string, unknown>>>> };
  readonly settings: Readonly<Record<string, unknown>>;
}

export interface IndexHealth {
  readonly status: string;
  /** Shards and copies of them that answer. */
  readonly activeShards: number;
  /** Those that have no node, or are being restored. */
  readonly missingShards: number;
  readonly dataNodes: number;
}

// biome-ignore lint/suspicious/noExplicitAny: replies have as many forms as calls; each is read where it is made.
type Body = any;

export interface OpenSearchHit {
  readonly _source?: Readonly<Record<string, unknown>>;
  readonly fields?: Readonly<Record<string, readonly unknown[]>>;
  readonly sort?: readonly unknown[];
}

export interface OpenSearchReply {
  readonly hits: readonly OpenSearchHit[];
  /** Documents that the query finds, or the limit of the count; 0 if they were not counted. */
  readonly total: number;
}

interface SdkRequest extends Promise<{ readonly body: Body }> {
  abort(): void;
}

interface Sdk {
  readonly Client: new (options: object) => SdkClient;
}

interface SdkClient {
  readonly transport: { request(params: object, options: object): SdkRequest };
  close(): Promise<void>;
}

interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  readonly lines?: readonly unknown[];
  readonly signal?: AbortSignal;
  readonly limitMs?: number;
  /** Throws StoreFailure for a reply that lacks results. */
  readonly check?: (body: Body) => void;
  readonly readsRows?: boolean;
}

/**
 * The only user of OpenSearch's Node client, an optional package. Every call has a time limit and a bounded number of attempts, each at
 * another node if there are several, and fails with STORE_FAILED, STORE_REFUSED or INDEX_NOT_FOUND. A reply with failed, skipped or late
 * shards is a failure. Writes are by the number of the row, so that an attempt whose reply was lost can be repeated.
 */
export class OpenSearchClient {
  readonly server: string;
  readonly #client: SdkClient;

  private constructor(server: string, client: SdkClient) {
    this.server = server;
    this.#client = client;
  }

  /** @throws TrawlError PACKAGE_MISSING, CONFIG_INVALID, STORE_…; NOT_SUPPORTED for another program than OpenSearch 2 or newer. */
  static async connect(address: OpenSearchAddress): Promise<OpenSearchClient> {
    const sdk = await loadSdk();
    const { servers, tls } = address;
    const credentials = credentialsFor(address);
    const client = new OpenSearchClient(
      servers.join(','),
      new sdk.Client({
        nodes: servers.map((server) => `${tls ? 'https' : 'http'}://${server}`),
        auth: credentials && { username: credentials.user, password: credentials.password },
        // Attempts are counted here: the package would also repeat calls after a time limit.
        maxRetries: 0,
        requestTimeout: READ_MS,
        // The package would otherwise send its own requests to nodes that failed.
        resurrectStrategy: 'optimistic',
      }),
    );
    try {
      await client.version();
      return client;
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  async version(): Promise<string> {
    const { version } = await this.#call('report its version', {
      method: 'GET',
      path: '/',
      check: ({ version: found }) => {
        if (typeof found?.number !== 'string') throw statusFailure(200, 'its reply has no version');
      },
    });
    if (version.distribution === 'opensearch' && Number.parseInt(version.number, 10) >= 2) return version.number;
    throw new TrawlError(
      'NOT_SUPPORTED',
      `The server at ${this.server} is ${version.distribution ?? 'not OpenSearch, but says version'} ${version.number}; expected OpenSearch 2 or newer.`,
    );
  }

  /** Undefined if no index or alias has the name. @throws TrawlError NOT_SUPPORTED for an alias of several. */
  async describe(name: string): Promise<IndexFacts | undefined> {
    let found: Record<string, Omit<IndexFacts, 'name'> & { settings: { index: Record<string, unknown> } }>;
    try {
      found = await this.#call('describe the index', { method: 'GET', path: `/${name}` });
    } catch (error) {
      if (error instanceof TrawlError && error.code === 'INDEX_NOT_FOUND') return undefined;
      throw error;
    }
    const [first, ...others] = Object.entries(found);
    if (first === undefined) return undefined;
    if (others.length > 0) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        `${name} is an alias of ${others.length + 1} indexes of OpenSearch at ${this.server}; expected one.`,
      );
    }
    return { name: first[0], mappings: first[1].mappings, settings: first[1].settings.index };
  }

  async create(index: string, body: { readonly settings: object; readonly mappings: object }): Promise<void> {
    await this.#write('create the index', { method: 'PUT', path: `/${index}`, body });
  }

  async changeSettings(index: string, settings: object): Promise<void> {
    await this.#write('change the settings of the index', {
      method: 'PUT',
      path: `/${index}/_settings`,
      body: settings,
    });
  }

  async drop(index: string): Promise<void> {
    await this.#write('drop the index', { method: 'DELETE', path: `/${index}` });
  }

  /** Makes everything that was written visible to searches. */
  async refresh(index: string): Promise<void> {
    await this.#write('refresh the index', {
      method: 'POST',
      path: `/${index}/_refresh`,
      check: ({ _shards }) => {
        if (_shards?.failed !== 0) throw incomplete(`${_shards?.failed} shards failed`);
      },
    });
  }

  /** `green`: all copies are there; `yellow`: each shard is there once; `red`: rows are missing. */
  async health(index: string): Promise<IndexHealth> {
    const { status, active_shards, unassigned_shards, initializing_shards, number_of_data_nodes } = await this.#call(
      'report the health of the index',
      { method: 'GET', path: `/_cluster/health/${index}` },
    );
    return {
      status,
      activeShards: active_shards,
      missingShards: unassigned_shards + initializing_shards,
      dataNodes: number_of_data_nodes,
    };
  }

  async clusterHealth(): Promise<{ readonly name: string; readonly status: string; readonly dataNodes: number }> {
    const { cluster_name, status, number_of_data_nodes } = await this.#call('report the health of the cluster', {
      method: 'GET',
      path: '/_cluster/health',
    });
    return { name: cluster_name, status, dataNodes: number_of_data_nodes };
  }

  /**
   * Stores documents by their keys.
   *
   * @param action if a key exists: `index` replaces its document, `create` keeps it. A replaced document counts twice in the scores of
   * words until OpenSearch merges its segment.
   */
  async store(
    index: string,
    action: 'index' | 'create',
    documents: readonly (readonly [key: number, document: object])[],
  ): Promise<void> {
    await this.#write('store rows', {
      method: 'POST',
      path: `/${index}/_bulk`,
      lines: documents.flatMap(([key, document]) => [{ [action]: { _id: String(key) } }, document]),
      check: ({ items }) => {
        if (items?.length !== documents.length) {
          throw incomplete(`it reports ${items?.length} of ${documents.length} rows`);
        }
        for (const item of items as Record<string, { status: number; error?: unknown }>[]) {
          const { status, error } = item[action]!;
          const exists = action === 'create' && status === 409;
          if (status >= 300 && !exists) throw statusFailure(status, error);
        }
      },
    });
  }

  /**
   * Several searches in one call. With `ofAllShards`, BM25 counts words over all shards, not each shard alone. Matching rows are counted
   * exactly unless `track_total_hits` of a search says otherwise.
   */
  async searchMany(
    index: string,
    searches: readonly object[],
    signal?: AbortSignal,
    { ofAllShards = false }: { readonly ofAllShards?: boolean } = {},
  ): Promise<readonly OpenSearchReply[]> {
    const header = {
      allow_partial_search_results: false,
      search_type: ofAllShards ? 'dfs_query_then_fetch' : undefined,
    };
    const counted = searches.map((search) => ({ track_total_hits: true as boolean | number, ...search }));
    const { responses } = await this.#call('search', {
      method: 'POST',
      path: `/${index}/_msearch`,
      lines: counted.flatMap((search) => [header, search]),
      signal,
      readsRows: true,
      check: ({ responses: found }) => {
        if (found?.length !== searches.length) {
          throw incomplete(`it answered ${found?.length} of ${searches.length} searches`);
        }
        for (const [i, response] of found.entries()) checkComplete(response, counted[i]!.track_total_hits);
      },
    });
    return responses.map(({ hits }: Body) => ({ hits: hits.hits, total: hits.total?.value ?? 0 }));
  }

  async search(index: string, search: object, signal?: AbortSignal): Promise<OpenSearchReply> {
    const [reply] = await this.searchMany(index, [search], signal);
    return reply!;
  }

  /** Makes the alias name the index; from one index to another in one step. */
  async setAlias(alias: string, index: string): Promise<void> {
    const facts = await this.describe(alias);
    if (facts?.name === alias) {
      throw new TrawlError(
        'INDEX_EXISTS',
        `${alias} is an index of OpenSearch at ${this.server}, so that it cannot be an alias. Choose another name.`,
      );
    }
    const removed = facts === undefined ? [] : [{ remove: { index: facts.name, alias } }];
    const actions = [...removed, { add: { index, alias } }];
    await this.#write('set the alias', { method: 'POST', path: '/_aliases', body: { actions } });
  }

  async close(): Promise<void> {
    await this.#client.close().catch(() => undefined);
  }

  #write(doing: string, call: Call): Promise<Body> {
    return this.#call(doing, { ...call, limitMs: WRITE_MS });
  }

  async #call(doing: string, call: Call): Promise<Body> {
    const { method, path, body, lines, signal, limitMs = READ_MS, check, readsRows = false } = call;
    const params = { method, path, body, bulkBody: lines?.map((line) => JSON.stringify(line)) };
    const attempt = async (): Promise<Body> => {
      const request = this.#client.transport.request(params, { requestTimeout: limitMs });
      // OpenSearch ends a search whose connection is closed. The listener must not return the promise of `abort`: its rejection would end
      // the process.
      const abort = (): void => {
        request.abort();
      };
      signal?.addEventListener('abort', abort, { once: true });
      try {
        const { body: reply } = await request;
        check?.(reply);
        return reply;
      } finally {
        signal?.removeEventListener('abort', abort);
      }
    };
    const called = { store: 'OpenSearch', server: this.server, refusalAdvice: REFUSAL_ADVICE } as const;
    return callStore(called, { doing, attempt, failureOf, readsRows, signal });
  }
}

/**
 * @param counted `track_total_hits` of the search: whether hits are counted, or up to which number.
 * @throws StoreFailure for a search that failed, or whose hits may be incomplete.
 */
function checkComplete(response: Body, counted: boolean | number): void {
  if (response.error !== undefined) throw statusFailure(response.status ?? 0, response.error);
  const { timed_out, terminated_early, _shards, hits } = response;
  if (timed_out !== false) throw incomplete('the search ran out of time');
  if (terminated_early === true) throw incomplete('the search ended before its end');
  const { total, successful, skipped = 0, failed } = _shards ?? {};
  if (total === undefined || total < 1 || successful !== total || failed !== 0 || skipped !== 0) {
    throw incomplete(`of ${total} shards, ${successful} were searched, ${failed} failed and ${skipped} were skipped`);
  }
  const { value, relation } = hits?.total ?? {};
  const isCounted =
    counted === false || relation === 'eq' || (relation === 'gte' && typeof counted === 'number' && value >= counted);
  if (!isCounted || !Array.isArray(hits?.hits)) {
    throw incomplete('its answer has no exact number of hits');
  }
}

async function loadSdk(): Promise<Sdk> {
  const [loaded] = (await importOptional([PACKAGE], `An index in OpenSearch needs the package ${PACKAGE}`)) as [
    { readonly default?: Sdk } & Sdk,
  ];
  return loaded.Client === undefined ? loaded.default! : loaded;
}

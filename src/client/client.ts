import { TrawlConnectionError } from './errors.ts';
import { Requests } from './requests.ts';
import { checkRetry, DEFAULT_RETRY, pause, type RetryOptions } from './retry.ts';
import type {
  GroupInfo,
  IndexInfo,
  Passage,
  PassagesReply,
  PassagesRequest,
  Query,
  Readiness,
  ScoredDocument,
  ScoreQuery,
  ScoreReply,
  ScoreRequest,
  SearchReply,
  SearchRequest,
} from './types.ts';

/** The server's limit of texts per request, which is OpenAI's. */
const MAX_EMBEDDED_TEXTS = 2_048;

export interface ClientOptions {
  /** Sent as `Authorization: Bearer …`. */
  readonly apiKey?: string;
  readonly retry?: Partial<RetryOptions>;
  /** Replaces the global `fetch`, for a proxy or other time-outs. */
  readonly fetch?: typeof fetch;
}

export interface CallOptions {
  /** Aborting cancels the call, on the server too; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

interface RetrieveOptions {
  readonly topk?: number;
  /** The question of each query. */
  readonly questions?: readonly (string | null)[];
  /** The earlier queries of each query, oldest first. */
  readonly histories?: readonly (readonly string[] | null)[];
  readonly template?: SearchRequest['template'];
  /** Where the queries come from, for `--record` of the server (docs/recording.md). It changes no reply. */
  readonly record?: SearchRequest['record'];
}

/**
 * A client of Trawl servers that needs only `fetch`, for Node, browsers and other runtimes. `url` is one base URL or several, as a
 * list or separated by commas. Calls go to the servers in round-robin order, and a server that fails is set aside for a while
 * (RetryOptions). Because a busy server lets requests wait, a call has no time limit except `fetch`'s own (in Node, five minutes
 * without a byte of the response); use `signal` to set one. JSON.parse rounds integers beyond 2^53 in documents.
 *
 * A client belongs to its thread: `postMessage` and `structuredClone` refuse it. Make one in each worker thread.
 *
 * Errors: TrawlResponseError if the server refuses the request, TrawlConnectionError if no server answers.
 */
export class TrawlClient {
  readonly #requests: Requests;
  /** A property that is a function cannot be cloned. Without one, the clone would be an empty object. */
  protected readonly uncloneable = function makeAClientInEachThread(): void {};

  constructor(
    url: string | readonly string[] = 'http://127.0.0.1:8000',
    { apiKey, retry = {}, fetch: ownFetch }: ClientOptions = {},
  ) {
    this.#requests = new Requests(
      url,
      checkRetry({ ...DEFAULT_RETRY, ...retry }),
      { accept: 'application/json', ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }) },
      ownFetch ?? ((...args) => fetch(...args)),
    );
  }

  /** Searches for several queries at once. A query that fails does not fail the others: its result has the error. */
  search(request: SearchRequest | readonly Query[], options?: CallOptions): Promise<SearchReply> {
    return this.#requests.json('/v1/search', Array.isArray(request) ? { queries: request } : request, options?.signal);
  }

  /** Sends Search-R1's request. Returns the documents and scores of each query, best first. */
  async retrieve(
    queries: readonly string[],
    { topk, questions, histories, template, record, signal }: CallOptions & RetrieveOptions = {},
  ): Promise<ScoredDocument[][]> {
    const body = { queries, topk, questions, history_queries: histories, template, record, return_scores: true };
    return (await this.#requests.json<{ result: ScoredDocument[][] }>('/retrieve', body, signal)).result;
  }

  /** The passage with this id; TrawlResponseError with the code NOT_FOUND if no passage has it. */
  async passage(id: string | number | bigint, options?: CallOptions): Promise<Passage> {
    return this.#requests.json(`/v1/passages/${encodeURIComponent(String(id))}`, undefined, options?.signal);
  }

  /** Many passages by id and by row, in this order, and the documents that they belong to. */
  passages(request: PassagesRequest, options?: CallOptions): Promise<PassagesReply> {
    return this.#requests.json('/v1/passages', request, options?.signal);
  }

  /** The scores of given passages, their exact ranks, and whether they have an answer. */
  score(request: ScoreRequest | readonly ScoreQuery[], options?: CallOptions): Promise<ScoreReply> {
    return this.#requests.json('/v1/score', Array.isArray(request) ? { queries: request } : request, options?.signal);
  }

  async indexes(options?: CallOptions): Promise<IndexInfo[]> {
    return (await this.#requests.json<{ indexes: IndexInfo[] }>('/v1/indexes', undefined, options?.signal)).indexes;
  }

  /** The server's groups, whose names as `index` search several indexes as one. */
  async groups(options?: CallOptions): Promise<GroupInfo[]> {
    return (await this.#requests.json<{ groups: GroupInfo[] }>('/v1/indexes', undefined, options?.signal)).groups;
  }

  /**
   * Embeds texts with the prefix and the token limit of queries (default) or of passages. `model` may be omitted if the server has
   * one encoder.
   */
  async embed(
    texts: readonly string[],
    { inputType = 'query', model, signal }: CallOptions & { inputType?: 'query' | 'passage'; model?: string } = {},
  ): Promise<Float32Array[]> {
    const vectors: Float32Array[] = [];
    if (texts.length === 0) return vectors;
    const name = model ?? (await this.#onlyModel(signal));
    for (let start = 0; start < texts.length; start += MAX_EMBEDDED_TEXTS) {
      const input = texts.slice(start, start + MAX_EMBEDDED_TEXTS);
      const body = { input, model: name, input_type: inputType, encoding_format: 'base64' };
      const reply = await this.#requests.json<{ data: { embedding: string }[] }>('/v1/embeddings', body, signal);
      for (const { embedding } of reply.data) vectors.push(floats(embedding));
    }
    return vectors;
  }

  /** Whether a server is ready, without retries. The facts come from the first ready server. */
  ready(options?: CallOptions): Promise<Readiness> {
    return this.#requests.ready(options?.signal);
  }

  /** Waits until a server is ready, even if none is listening yet. Throws TrawlConnectionError after `timeoutMs`. */
  async waitUntilReady({
    timeoutMs = 600_000,
    pollMs = 500,
    signal,
  }: CallOptions & { timeoutMs?: number; pollMs?: number } = {}): Promise<Readiness> {
    const end = performance.now() + timeoutMs;
    const { urls } = this.#requests.servers;
    for (;;) {
      let last: string;
      try {
        const readiness = await this.#requests.ready(signal);
        if (readiness.ready) return readiness;
        last = String(readiness.facts.progress ?? readiness.status);
      } catch (error) {
        if (!(error instanceof TrawlConnectionError)) throw error;
        last = error.message;
      }
      if (performance.now() + pollMs > end) {
        throw new TrawlConnectionError(`${urls.join(', ')} is not ready after ${timeoutMs} ms: ${last}`, urls.at(-1)!);
      }
      await pause(pollMs, signal);
    }
  }

  async #onlyModel(signal: AbortSignal | undefined): Promise<string> {
    const indexes = await this.indexes({ signal });
    // An index without vectors has no encoder.
    const names = [...new Set(indexes.flatMap(({ model }) => (model === null ? [] : [model.name])))];
    if (names.length === 1) return names[0]!;
    throw new TypeError(`The server has the encoders ${names.join(', ') || '(none)'}; choose one with \`model\`.`);
  }
}

function floats(base64: string): Float32Array {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(i * 4, true));
}

import { TrawlConnectionError, TrawlResponseError } from './errors.ts';
import { checkRetry, DEFAULT_RETRY, pause, type RetryOptions, waitMs } from './retry.ts';
import type { IndexInfo, Passage, Query, Readiness, ScoredDocument, SearchReply, SearchRequest } from './types.ts';

/** More texts in one call are refused by the server, as by OpenAI's. */
const MAX_EMBEDDED_TEXTS = 2_048;

export interface ClientOptions {
  /** Sent as `Authorization: Bearer …`. */
  readonly apiKey?: string;
  readonly retry?: Partial<RetryOptions>;
  /** In place of the global `fetch`: for a proxy, or a runtime's own. */
  readonly fetch?: typeof fetch;
}

export interface CallOptions {
  /** Ends the call, and the server's work on it; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/**
 * A client of a Trawl server on `fetch` alone, for Node, browsers and other runtimes. Calls wait as long as `fetch` does,
 * which in Node is five minutes without a byte of the answer, since a busy server lets requests wait; `signal` bounds it.
 * Integers beyond 2^53 in documents are rounded, as JSON.parse does. Errors: TrawlResponseError, TrawlConnectionError.
 */
export class TrawlClient {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #retry: RetryOptions;
  readonly #fetch: typeof fetch;

  constructor(url = 'http://127.0.0.1:8000', { apiKey, retry = {}, fetch: own }: ClientOptions = {}) {
    this.#url = new URL(url).href.replace(/\/+$/, '');
    this.#headers = {
      accept: 'application/json',
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    };
    this.#retry = checkRetry({ ...DEFAULT_RETRY, ...retry });
    this.#fetch = own ?? ((...args) => fetch(...args));
  }

  /** Searches for several queries at once; a query that fails does so alone, in its result. */
  async search(request: SearchRequest | readonly Query[], options?: CallOptions): Promise<SearchReply> {
    const body = Array.isArray(request) ? { queries: request } : request;
    return (await this.#call('/v1/search', body, options)) as SearchReply;
  }

  /** Search-R1's request: for each query its documents with scores, best first. */
  async retrieve(
    queries: readonly string[],
    { topk, questions, ...options }: CallOptions & { topk?: number; questions?: readonly (string | null)[] } = {},
  ): Promise<ScoredDocument[][]> {
    const body = { queries, topk, questions, return_scores: true };
    return ((await this.#call('/retrieve', body, options)) as { result: ScoredDocument[][] }).result;
  }

  /** A passage by its id; TrawlResponseError NOT_FOUND where there is none. */
  async passage(id: string | number | bigint, options?: CallOptions): Promise<Passage> {
    return (await this.#call(`/v1/passages/${encodeURIComponent(String(id))}`, undefined, options)) as Passage;
  }

  /** The indexes that the server has. */
  async indexes(options?: CallOptions): Promise<IndexInfo[]> {
    return ((await this.#call('/v1/indexes', undefined, options)) as { indexes: IndexInfo[] }).indexes;
  }

  /**
   * Vectors of texts, with the prefix and the limit of queries or of passages. `model` is the encoder's name, and may be
   * left out where the server has one.
   */
  async embed(
    texts: readonly string[],
    { kind = 'query', model, ...options }: CallOptions & { kind?: 'query' | 'passage'; model?: string } = {},
  ): Promise<Float32Array[]> {
    const vectors: Float32Array[] = [];
    if (texts.length === 0) return vectors;
    const name = model ?? (await this.#onlyModel(options));
    for (let start = 0; start < texts.length; start += MAX_EMBEDDED_TEXTS) {
      const input = texts.slice(start, start + MAX_EMBEDDED_TEXTS);
      const body = { input, model: name, input_type: kind, encoding_format: 'base64' };
      const { data } = (await this.#call('/v1/embeddings', body, options)) as { data: { embedding: string }[] };
      for (const { embedding } of data) vectors.push(floats(embedding));
    }
    return vectors;
  }

  /** Whether the server answers requests, asked once. */
  async ready(options?: CallOptions): Promise<Readiness> {
    const response = await this.#send('/readyz', undefined, options?.signal);
    if (response.status !== 503) await throwIfRefused(response);
    const facts = await jsonObject(response, options?.signal);
    return { ready: response.status === 200, status: String(facts.status), facts };
  }

  /** Waits until the server is ready, also for one that does not listen yet; TrawlConnectionError after `timeoutMs`. */
  async waitUntilReady({
    timeoutMs = 600_000,
    pollMs = 500,
    signal,
  }: CallOptions & { timeoutMs?: number; pollMs?: number } = {}): Promise<Readiness> {
    const end = performance.now() + timeoutMs;
    const options = signal === undefined ? {} : { signal };
    for (;;) {
      let last: string;
      try {
        const readiness = await this.ready(options);
        if (readiness.ready) return readiness;
        last = String(readiness.facts.progress ?? readiness.status);
      } catch (error) {
        if (!(error instanceof TrawlConnectionError)) throw error;
        last = error.message;
      }
      if (performance.now() + pollMs > end) {
        throw new TrawlConnectionError(`${this.#url} is not ready after ${timeoutMs} ms: ${last}`);
      }
      await pause(pollMs, signal);
    }
  }

  async #onlyModel(options: CallOptions): Promise<string> {
    const names = [...new Set((await this.indexes(options)).map(({ model }) => model.name))];
    if (names.length === 1) return names[0]!;
    throw new TypeError(`The server has the encoders ${names.join(', ')}; say which as model.`);
  }

  async #call(path: string, body: object | undefined, { signal }: CallOptions = {}): Promise<object> {
    for (let attempt = 0; ; attempt++) {
      const last = attempt + 1 >= this.#retry.attempts;
      let retryAfter: string | null = null;
      try {
        const response = await this.#send(path, body, signal);
        if (response.status !== 503 || last) {
          await throwIfRefused(response);
          return await jsonObject(response, signal);
        }
        retryAfter = response.headers.get('retry-after');
        await response.body?.cancel();
      } catch (error) {
        if (!(error instanceof TrawlConnectionError) || timedOut(error) || last) throw error;
      }
      await pause(waitMs(attempt, retryAfter, this.#retry), signal);
    }
  }

  /** A GET, or a POST with a body. */
  async #send(path: string, body: object | undefined, signal: AbortSignal | undefined): Promise<Response> {
    const init: RequestInit = { headers: this.#headers, ...(signal === undefined ? {} : { signal }) };
    if (body !== undefined) {
      init.method = 'POST';
      init.headers = { ...this.#headers, 'content-type': 'application/json' };
      init.body = JSON.stringify(body);
    }
    return await orConnectionError(this.#url, signal, () => this.#fetch(`${this.#url}${path}`, init));
  }
}

/** What `fetch` and the reading of a body reject with where there is no answer. */
async function orConnectionError<T>(url: string, signal: AbortSignal | undefined, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (signal?.aborted === true) throw signal.reason;
    const { message, cause } = error as Error;
    const reason = cause instanceof Error ? `${message}: ${cause.message}` : message;
    throw new TrawlConnectionError(`No answer from ${url}: ${reason}`, { cause: error });
  }
}

/** Whether the runtime gave up waiting: the server may still be at work, and would be asked to do it twice. */
function timedOut({ cause }: TrawlConnectionError): boolean {
  const code = ((cause as Error | undefined)?.cause as { code?: unknown } | undefined)?.code;
  return code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT';
}

async function throwIfRefused(response: Response): Promise<void> {
  if (response.ok) return;
  let code = 'UNKNOWN';
  let message = response.statusText || 'The server refused the request.';
  try {
    const { error } = (await response.json()) as { error: { code: unknown; message: unknown } };
    code = String(error.code);
    message = String(error.message);
  } catch {
    // Not one of our errors: a proxy's page, say. The status tells what there is to tell.
  }
  throw new TrawlResponseError(response.status, code, message, response.headers.get('x-request-id'));
}

async function jsonObject(response: Response, signal: AbortSignal | undefined): Promise<Record<string, unknown>> {
  const text = await orConnectionError(response.url, signal, () => response.text());
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Record<string, unknown>;
  throw new TypeError(`${response.url} answers with something that is no JSON object; is it a Trawl server?`);
}

/** Float32 values, little-endian, in base64. */
function floats(base64: string): Float32Array {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(i * 4, true));
}

import { throwIfCancelled } from '../../base/abort.ts';
import { asTrawlError, TrawlError } from '../../base/errors.ts';
import { isObject } from '../../base/objects.ts';
import { ModelServers } from '../model-server/model-servers.ts';
import { parseServerUrl } from '../model-server/server-url.ts';
import { MOST_PASSAGES, RERANK_APIS, type RerankApi, rerankBody, rerankScores } from './rerank-api.ts';
import type { Reranker, RerankerInfo, RerankList, RerankOptions, RerankOutcome, RerankScores } from './reranker.ts';

export interface HttpRerankerOptions {
  /** Default: the first of `RERANK_APIS` that the server answers. */
  readonly api?: RerankApi;
  /** `model` of the requests, which Cohere's format has. Default: none. */
  readonly model?: string;
  /** Sent as `authorization: Bearer`. Never part of a message. */
  readonly apiKey?: string;
  /** Time limit of one request, in milliseconds. Default: 60,000. */
  readonly timeoutMs?: number;
  /** Pause before the first retry, in milliseconds; it doubles with each further one. Default: 250. */
  readonly firstWaitMs?: number;
}

/** Statuses that say that the query or its passages are at fault: not valid, too large, too many tokens. */
const REFUSED_STATUSES: readonly (number | undefined)[] = [400, 413, 422];

const TRIAL: RerankList = { query: 'a', passages: ['a', 'b'] };

/**
 * A rerank server: text-embeddings-inference, vLLM, or the API of Cohere or Jina. A list fails alone, after retries with growing
 * pauses: with RERANK_REFUSED if the server refuses it for good, else with RERANK_FAILED. Truncation and scores are the server's.
 */
export class HttpReranker implements Reranker {
  readonly info: RerankerInfo;
  readonly expectedWaitMs = 0;
  readonly #url: string;
  readonly #api: RerankApi;
  readonly #options: HttpRerankerOptions;
  readonly #servers: ModelServers;
  /** Most passages of a request: what the server states, and fewer once a larger request has been refused for its size. */
  #most: number;

  private constructor(url: string, api: RerankApi, options: HttpRerankerOptions) {
    this.#url = url;
    this.#api = api;
    this.#options = options;
    this.#servers = new ModelServers(1, {
      apiKey: options.apiKey,
      timeoutMs: options.timeoutMs ?? 60_000,
      firstWaitMs: options.firstWaitMs ?? 250,
      maxWaitMs: 10_000,
      attempts: 5,
      concurrency: 8,
      failed,
    });
    this.#most = MOST_PASSAGES[api];
    this.info = { name: options.model ?? new URL(url).host, maxTokens: null };
  }

  /** Asks for the server's limit, and sends a trial request. A URL without a path gets `/rerank`. Throws CONFIG_INVALID for a wrong URL, else RERANK_FAILED. */
  static async open(text: string, options: HttpRerankerOptions = {}): Promise<HttpReranker> {
    const url = completeUrl(text);
    const apis = options.api === undefined ? RERANK_APIS : [options.api];
    let failure: TrawlError | undefined;
    for (const api of apis) {
      const reranker = new HttpReranker(url, api, options);
      if (api === 'tei') await reranker.#readLimit();
      const [outcome] = (await reranker.score([TRIAL])).outcomes;
      if (outcome?.ok === true) return reranker;
      failure = outcome?.error;
    }
    throw new TrawlError('RERANK_FAILED', `The rerank server ${url} cannot be used: ${failure!.message}`, {
      cause: failure,
    });
  }

  async score(lists: readonly RerankList[], options: RerankOptions = {}): Promise<RerankScores> {
    throwIfCancelled(options.signal);
    const called = performance.now();
    let started: number | undefined;
    const onStart = (): void => {
      started ??= performance.now();
    };
    const outcomes = await Promise.all(
      lists.map(async (list): Promise<RerankOutcome> => {
        try {
          const scores = await this.#scoreList(list, options, onStart);
          return { ok: true, scores, tokens: null, truncated: 0 };
        } catch (error) {
          const failure = asTrawlError(error);
          if (failure.code === 'CANCELLED' || failure.code === 'NOT_SUPPORTED') throw failure;
          return { ok: false, error: failure };
        }
      }),
    );
    return { outcomes, waitedMs: (started ?? called) - called };
  }

  async close(): Promise<void> {
    this.#servers.close();
  }

  async #scoreList(
    { query, passages }: RerankList,
    options: RerankOptions,
    onStart: () => void,
  ): Promise<Float32Array> {
    const scores = new Float32Array(passages.length);
    for (let from = 0; from < passages.length; ) {
      const part = passages.slice(from, from + this.#most);
      scores.set(await this.#scorePart({ query, passages: part }, options, onStart), from);
      from += part.length;
    }
    return scores;
  }

  /** Scores passages in one request, or in halves if it is refused, which servers do for the number of passages, too. */
  async #scorePart(list: RerankList, options: RerankOptions, onStart: () => void): Promise<Float32Array> {
    const { query, passages } = list;
    const { model } = this.#options;
    const { raw = false, signal } = options;
    try {
      const body = JSON.stringify(rerankBody(this.#api, list, { model, raw }));
      const texts = [query, ...passages];
      const reply = await this.#servers.send({ url: () => this.#url, body, texts, signal, onStart });
      return rerankScores(this.#api, reply, passages.length);
    } catch (error) {
      if (asTrawlError(error).code !== 'RERANK_REFUSED' || passages.length <= 1) throw error;
      const middle = Math.ceil(passages.length / 2);
      const scores = new Float32Array(passages.length);
      for (const [from, to] of [
        [0, middle],
        [middle, passages.length],
      ] as const) {
        scores.set(await this.#scorePart({ query, passages: passages.slice(from, to) }, options, onStart), from);
      }
      // No passage is at fault, so their number is.
      this.#most = Math.min(this.#most, middle);
      return scores;
    }
  }

  /** Takes the limit that text-embeddings-inference states at `/info`. A server that does not have the page states none. */
  async #readLimit(): Promise<void> {
    const url = new URL(this.#url);
    url.pathname = `${url.pathname.replace(/(\/v[12])?\/rerank\/?$/, '')}/info`;
    const info = await this.#servers.send({ url: () => url.href, attempts: 1 }).catch(() => undefined);
    const most = isObject(info) ? info.max_client_batch_size : undefined;
    if (typeof most === 'number' && Number.isSafeInteger(most) && most > 0) this.#most = most;
  }
}

function completeUrl(text: string): string {
  const url = parseServerUrl(text, { what: 'reranker', keyOption: '--rerank-key-file' });
  if (url.pathname === '/') url.pathname = '/rerank';
  return url.href;
}

function failed(reason: string, { status, said }: { readonly status?: number; readonly said: string }): TrawlError {
  return REFUSED_STATUSES.includes(status)
    ? new TrawlError('RERANK_REFUSED', `The rerank server refuses the query or its passages: ${reason}${said}.`)
    : new TrawlError('RERANK_FAILED', `The rerank server failed: ${reason}${said}.`, { details: { fault: reason } });
}

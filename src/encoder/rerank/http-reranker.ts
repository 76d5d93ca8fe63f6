import { throwIfCancelled } from '../../base/abort.ts';
import { asTrawlError, TrawlError } from '../../base/errors.ts';
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

/** Attempts of a request that the server refuses with 429 or 503, or that gets no answer. */
const ATTEMPTS = 5;
/** Longest pause before a retry, also if the server asks for a longer one. */
const MAX_WAIT_MS = 10_000;
/** Requests at the same time. */
const CONCURRENCY = 8;
/** Statuses that say that the query or its passages are at fault: not valid, too large, too many tokens. */
const REFUSED_STATUSES = [400, 413, 422];

const TRIAL: RerankList = { query: 'a', passages: ['a', 'b'] };

/**
 * A rerank server: text-embeddings-inference, vLLM, or the API of Cohere or Jina. A list fails alone, after retries with growing
 * pauses: with RERANK_REFUSED if the server refuses it for good, else with RERANK_FAILED. Truncation is the server's, and so are the scores.
 */
export class HttpReranker implements Reranker {
  readonly info: RerankerInfo;
  readonly expectedWaitMs = 0;
  readonly #url: string;
  readonly #api: RerankApi;
  readonly #options: HttpRerankerOptions;
  readonly #servers: ModelServers;

  private constructor(url: string, api: RerankApi, options: HttpRerankerOptions) {
    this.#url = url;
    this.#api = api;
    this.#options = options;
    this.#servers = new ModelServers(1, {
      apiKey: options.apiKey,
      timeoutMs: options.timeoutMs ?? 60_000,
      firstWaitMs: options.firstWaitMs ?? 250,
      maxWaitMs: MAX_WAIT_MS,
      attempts: ATTEMPTS,
      concurrency: CONCURRENCY,
      failed,
    });
    this.info = { name: options.model ?? new URL(url).host, maxTokens: null };
  }

  /**
   * Sends a trial request. A URL without a path gets `/rerank`.
   *
   * @throws TrawlError CONFIG_INVALID for a wrong URL; RERANK_FAILED if the server cannot be used.
   */
  static async open(text: string, options: HttpRerankerOptions = {}): Promise<HttpReranker> {
    const url = completeUrl(text);
    const apis = options.api === undefined ? RERANK_APIS : [options.api];
    let failure: TrawlError | undefined;
    for (const api of apis) {
      const reranker = new HttpReranker(url, api, options);
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
    const started = performance.now();
    let firstStart: number | undefined;
    const outcomes = await Promise.all(
      lists.map(async (list): Promise<RerankOutcome> => {
        try {
          const scores = await this.#scoresOf(list, options, () => {
            firstStart ??= performance.now();
          });
          return { ok: true, scores, tokens: null, truncated: 0 };
        } catch (error) {
          const failure = asTrawlError(error);
          if (failure.code === 'CANCELLED' || failure.code === 'NOT_SUPPORTED') throw failure;
          return { ok: false, error: failure };
        }
      }),
    );
    return { outcomes, waitedMs: firstStart === undefined ? 0 : firstStart - started };
  }

  async close(): Promise<void> {
    this.#servers.close();
  }

  /** The scores of a list, in requests of as many passages as the server takes. */
  async #scoresOf(
    list: RerankList,
    { raw = false, signal }: RerankOptions,
    onStart: () => void,
  ): Promise<Float32Array> {
    const { query, passages } = list;
    const scores = new Float32Array(passages.length);
    const most = MOST_PASSAGES[this.#api];
    for (let from = 0; from < passages.length; from += most) {
      const part = passages.slice(from, from + most);
      const body = rerankBody(this.#api, { query, passages: part }, { model: this.#options.model, raw });
      const reply = await this.#servers.send({ url: () => this.#url, body: JSON.stringify(body), signal, onStart });
      scores.set(rerankScores(this.#api, reply, part.length), from);
    }
    return scores;
  }
}

function completeUrl(text: string): string {
  const url = parseServerUrl(text, { what: 'reranker', keyOption: '--rerank-key-file' });
  if (url.pathname === '/') url.pathname = '/rerank';
  return url.href;
}

/** The messages have no part of the reply, which may repeat queries. */
function failed(reason: string, { status }: { readonly status?: number } = {}): TrawlError {
  if (status !== undefined && REFUSED_STATUSES.includes(status)) return refused(reason);
  return new TrawlError('RERANK_FAILED', `The rerank server failed: ${reason}.`);
}

function refused(reason: string): TrawlError {
  return new TrawlError('RERANK_REFUSED', `The rerank server refuses the query or its passages: ${reason}.`);
}

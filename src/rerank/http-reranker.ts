import { setTimeout as sleep } from 'node:timers/promises';
import { cancelled, throwIfCancelled } from '../abort.ts';
import { asTrawlError, TrawlError } from '../errors.ts';
import { MOST_PASSAGES, RERANK_APIS, type RerankApi, rerankBody, rerankScores } from './rerank-api.ts';
import type { Reranker, RerankerInfo, RerankList, RerankOptions, RerankOutcome, RerankScores } from './reranker.ts';

export interface HttpRerankerOptions {
  /** Default: the first of `RERANK_APIS` that the server answers. */
  readonly api?: RerankApi | undefined;
  /** `model` of the requests, which Cohere's format has. Default: none. */
  readonly model?: string | undefined;
  /** Sent as `authorization: Bearer`. Never part of a message. */
  readonly apiKey?: string | undefined;
  /** Time limit of one request, in milliseconds. Default: 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Pause before the first retry, in milliseconds; it doubles with each further one. Default: 250. */
  readonly firstWaitMs?: number | undefined;
}

/** Attempts of a request that the server refuses with 429 or 503, or that gets no answer. */
const ATTEMPTS = 5;
/** Longest pause before a retry, also if the server asks for a longer one. */
const MAX_WAIT_MS = 10_000;
/** Requests at the same time. */
const CONCURRENCY = 8;
const RETRIED_STATUSES = [429, 503];
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
  readonly #closed = new AbortController();
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  private constructor(url: string, api: RerankApi, options: HttpRerankerOptions) {
    this.#url = url;
    this.#api = api;
    this.#options = options;
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
    this.#closed.abort();
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
      const reply = await this.#withSlot(() => {
        onStart();
        return this.#send(JSON.stringify(body), signal);
      });
      scores.set(rerankScores(this.#api, reply, part.length), from);
    }
    return scores;
  }

  async #withSlot<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= CONCURRENCY) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }

  /** Sends a request until it is answered, and returns the JSON of the reply. */
  async #send(body: string, signal: AbortSignal | undefined): Promise<unknown> {
    const { apiKey, timeoutMs = 60_000, firstWaitMs = 250 } = this.#options;
    const ended = AbortSignal.any([this.#closed.signal, ...(signal === undefined ? [] : [signal])]);
    const headers = {
      'content-type': 'application/json',
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    };
    for (let attempt = 1; ; attempt++) {
      throwIfCancelled(ended);
      let reason: string;
      let retryAfterMs: number | undefined;
      try {
        const response = await fetch(this.#url, {
          method: 'POST',
          headers,
          body,
          redirect: 'error',
          signal: AbortSignal.any([ended, AbortSignal.timeout(timeoutMs)]),
        });
        const text = await response.text();
        if (response.ok) return parsed(text);
        reason = `status ${response.status}`;
        if (REFUSED_STATUSES.includes(response.status)) throw refused(reason);
        if (!RETRIED_STATUSES.includes(response.status)) throw failed(reason);
        retryAfterMs = secondsIn(response.headers.get('retry-after'));
      } catch (error) {
        if (ended.aborted) throw cancelled();
        if (error instanceof TrawlError) throw error;
        reason = (error as Error).name === 'TimeoutError' ? `no answer within ${timeoutMs} ms` : 'no connection';
      }
      if (attempt === ATTEMPTS) throw failed(`${reason}, ${ATTEMPTS} times`);
      const wait = Math.min(MAX_WAIT_MS, retryAfterMs ?? firstWaitMs * 2 ** (attempt - 1) * (0.5 + Math.random() / 2));
      await sleep(wait, undefined, { signal: ended }).catch(() => undefined);
    }
  }
}

function completeUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new TrawlError(
      'CONFIG_INVALID',
      'The URL of the reranker is not valid; expected http://HOST/… or https://HOST/… without a user. Pass a key with --rerank-key-file.',
    );
  }
  if (url.pathname === '/') url.pathname = '/rerank';
  return url.href;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw failed('a reply that is not JSON');
  }
}

/** The messages have no part of the reply, which may repeat queries. */
function failed(reason: string): TrawlError {
  return new TrawlError('RERANK_FAILED', `The rerank server failed: ${reason}.`);
}

function refused(reason: string): TrawlError {
  return new TrawlError('RERANK_REFUSED', `The rerank server refuses the query or its passages: ${reason}.`);
}

function secondsIn(retryAfter: string | null): number | undefined {
  return retryAfter !== null && /^\d{1,6}$/.test(retryAfter.trim()) ? Number(retryAfter) * 1000 : undefined;
}

import { untilAborted } from '../../base/abort.ts';
import { encodeVector } from '../../base/base64-vector.ts';
import { TrawlError } from '../../base/errors.ts';
import type { EmbeddingApi, Probe } from '../identity/endpoint-record.ts';
import { ModelServers } from '../model-server/model-servers.ts';
import type { InputType } from '../text-encoder.ts';
import { type EmbeddingReply, type EmbeddingRequest, embeddingBody, readEmbeddings } from './embedding-api.ts';
import { type EndpointAddress, type EndpointFacts, type EndpointRoute, readFacts } from './endpoint-facts.ts';
import type { EndpointOptions } from './endpoint-options.ts';
import { LONG_PROBE, type ProbeText } from './probe-texts.ts';
import { RecentResults } from './recent-results.ts';

/** How the texts of a request are sent. */
export interface SentSettings {
  /** The route of each server. */
  readonly routes: readonly EndpointRoute[];
  readonly model: string | null;
  /** Whether TEI's `/embed` is to normalise. */
  readonly normalize: boolean;
  readonly prefixes: Readonly<Record<InputType, string>>;
  readonly added: Readonly<Record<InputType, Readonly<Record<string, unknown>>>>;
  /** Values of a vector of the endpoint. Null until the first vectors are known. */
  readonly dimension: number | null;
}

/** Which earlier answer may be used, and when to stop waiting. */
export interface Freshness {
  /** `performance.now()` from which on an answer must have been asked for. */
  readonly since: number;
  readonly signal?: AbortSignal;
}

type Encoding = EmbeddingRequest['encoding'];

/** How one request is sent. */
export interface EmbedCall {
  /** Default: the least busy one. */
  readonly server?: number;
  /** Default: the options' own. */
  readonly attempts?: number;
  /** Default: what the client knows of its servers. */
  readonly encoding?: Encoding;
  readonly signal?: AbortSignal;
  readonly onStart?: () => void;
}

/** Bytes of a value as JSON text, and of what surrounds the vectors of a reply. */
const BYTES_PER_VALUE = 32;
const BYTES_AROUND = 1024 * 1024;

/** Statuses of a request that is refused for its content: not valid, too large, too many tokens. */
const REFUSED_STATUSES = [400, 413, 422];

/** Whether a server refuses a request for its content, so that it would refuse it again. */
export function isRefusedContent(error: unknown): boolean {
  return error instanceof TrawlError && error.code === 'ENDPOINT_REFUSED';
}

/** Requests to the endpoints of one model. Several encoders may use it (`EndpointClients`). */
export class EndpointClient {
  readonly addresses: readonly EndpointAddress[];
  /** Requests at the same time to all endpoints. */
  readonly concurrency: number;
  readonly #servers: ModelServers;
  /** Answers about the servers, which several encoders use. */
  readonly #recent = new RecentResults();
  readonly #onLost = new Set<(server: number) => void>();
  /** When each server may have been started again (`performance.now()`). */
  readonly #lostAt: number[];
  /** `float` once a server has refused base64 and taken numbers. Encoders share it, so it never goes back. */
  #encoding: Encoding = 'base64';

  constructor(addresses: readonly EndpointAddress[], options: EndpointOptions) {
    this.addresses = addresses;
    this.#lostAt = addresses.map(() => 0);
    const concurrency = options.requests ?? 8;
    this.concurrency = concurrency * addresses.length;
    this.#servers = new ModelServers(addresses.length, {
      apiKey: options.apiKey,
      timeoutMs: options.timeoutMs ?? 60_000,
      firstWaitMs: options.firstWaitMs ?? 250,
      maxWaitMs: options.maxWaitMs ?? 10_000,
      attempts: options.attempts ?? 5,
      concurrency,
      onLost: (server) => {
        this.#lostAt[server] = performance.now();
        for (const listener of this.#onLost) listener(server);
      },
      failed: (reason, { server, status }) => failed(addresses[server]!, reason, status),
    });
  }

  /** The facts of a server. Pages that it does not have are left out. */
  facts(server: number, wanted: string | undefined, fresh: Freshness): Promise<EndpointFacts> {
    return this.#shared(server, ['facts', wanted], fresh, () =>
      readFacts(this.addresses[server]!, (url) => this.#page(server, url), wanted),
    );
  }

  /** Calls `listener` when a server may have been started again. Returns a function that ends this. */
  onLost(listener: (server: number) => void): () => void {
    this.#onLost.add(listener);
    return () => this.#onLost.delete(listener);
  }

  /**
   * Finds the route that a server has, by embedding a text.
   *
   * @param wanted the API that it must have.
   * @param preferred the API that is tried first.
   * @throws TrawlError CONFIG_INVALID; ENDPOINT_FAILED; CANCELLED.
   */
  findRoute(
    server: number,
    { wanted, preferred }: { readonly wanted: EndpointOptions['api']; readonly preferred: EmbeddingApi },
    settings: Omit<SentSettings, 'routes'>,
    fresh: Freshness,
  ): Promise<EndpointRoute> {
    const { routes, shown } = this.addresses[server]!;
    const candidates = routes
      .filter(({ api }) => wanted === undefined || api === wanted)
      .toSorted((a, b) => Number(b.api === preferred) - Number(a.api === preferred));
    if (candidates.length === 0) {
      throw new TrawlError(
        'CONFIG_INVALID',
        `--endpoint-api is ${wanted}, but the path of ${shown} belongs to the other API.`,
      );
    }
    return this.#shared(server, ['route', candidates, settings], fresh, () =>
      this.#firstRoute(server, candidates, settings),
    );
  }

  async #firstRoute(
    server: number,
    candidates: readonly EndpointRoute[],
    settings: Omit<SentSettings, 'routes'>,
  ): Promise<EndpointRoute> {
    for (const route of candidates) {
      try {
        await this.#try(server, route, settings);
        return route;
      } catch (error) {
        const isMissing = error instanceof TrawlError && [404, 405].includes(error.details.status!);
        if (!isMissing || route === candidates.at(-1)) throw error;
      }
    }
    throw failed(this.addresses[server]!, 'it has no route for embeddings', undefined);
  }

  /** Embeds a text. If a server refuses base64, it is asked for numbers, and so are all from then on. */
  async #try(server: number, route: EndpointRoute, others: Omit<SentSettings, 'routes'>): Promise<void> {
    const settings = { ...others, routes: this.addresses.map(() => route) };
    const encoding = this.#encoding;
    try {
      await this.embed(['a'], 'passage', settings, { server, encoding });
    } catch (error) {
      const status = error instanceof TrawlError ? error.details.status : undefined;
      const mayRefuseBase64 = encoding === 'base64' && (status === 400 || status === 422);
      if (!mayRefuseBase64 || route.api !== 'openai') throw error;
      await this.embed(['a'], 'passage', settings, { server, encoding: 'float' }).catch(() => {
        throw error;
      });
      this.#encoding = 'float';
    }
  }

  /** One request, and the server that answered it. Errors: ENDPOINT_FAILED, ENDPOINT_REFUSED, CANCELLED. */
  async embed(
    texts: readonly string[],
    inputType: InputType,
    { routes, model, normalize, prefixes, added, dimension }: SentSettings,
    { server, attempts, encoding = this.#encoding, signal, onStart }: EmbedCall = {},
  ): Promise<EmbeddingReply & { readonly server: number }> {
    const { api } = routes[server ?? 0]!;
    const prefix = prefixes[inputType];
    const body = embeddingBody(api, {
      texts: texts.map((text) => prefix + text),
      model,
      normalize,
      encoding,
      added: added[inputType],
    });
    let answering = 0;
    let headers: Headers | undefined;
    const reply = await this.#servers.send({
      url: (chosen) => {
        answering = chosen;
        return routes[chosen]!.url;
      },
      body,
      server,
      attempts,
      maxReplyBytes: dimension === null ? undefined : texts.length * dimension * BYTES_PER_VALUE + BYTES_AROUND,
      signal,
      onStart,
      onHeaders: (own) => (headers = own),
    });
    return { ...readEmbeddings(api, reply, { texts: texts.length, dimension }, headers), server: answering };
  }

  /**
   * Embeds the probes on one server, each in a request of its own: alone, its tokens are counted, and a refused one is known. Encoders
   * with the same probes and settings share the requests.
   *
   * @throws TrawlError ENDPOINT_FAILED; CANCELLED; a text that is refused for its length has no vector instead.
   */
  probe(server: number, texts: readonly ProbeText[], settings: SentSettings, fresh: Freshness): Promise<Probe[]> {
    // Of recorded probes without their vectors, which may differ in their last bits.
    const own = texts.map(({ name, inputType, text }) => ({ name, inputType, text }));
    return this.#shared(server, ['probes', own, settings], fresh, () => this.#probe(server, own, settings));
  }

  #probe(server: number, texts: readonly ProbeText[], settings: SentSettings): Promise<Probe[]> {
    return Promise.all(
      texts.map(async ({ name, inputType, text }): Promise<Probe> => {
        try {
          const { vectors, tokens } = await this.embed([text], inputType, settings, { server });
          const [vector] = vectors;
          if (!(vector instanceof Float32Array)) throw vector!;
          return { name, inputType, text, vector: encodeVector(vector), tokens };
        } catch (error) {
          if (name !== LONG_PROBE || !isRefusedContent(error)) throw error;
          return { name, inputType, text, vector: null, tokens: null };
        }
      }),
    );
  }

  /** An answer about a server. After a lost connection, answers of before do not count. */
  #shared<T>(server: number, what: unknown[], { since, signal }: Freshness, ask: () => Promise<T>): Promise<T> {
    const key = JSON.stringify([server, ...what]);
    return untilAborted(this.#recent.get(key, Math.max(since, this.#lostAt[server]!), ask), signal);
  }

  close(): void {
    this.#servers.close();
  }

  async #page(server: number, url: string): Promise<unknown> {
    try {
      return await this.#servers.send({ url: () => url, server, attempts: 2 });
    } catch (error) {
      const status = error instanceof TrawlError ? error.details.status : undefined;
      if (typeof status !== 'number' || !isMissingPage(status)) throw error;
      return undefined;
    }
  }
}

/** Whether the server does not have a page. An overloaded or starting server may have it. */
function isMissingPage(status: number): boolean {
  return status === 501 || (status < 500 && status !== 408 && status !== 429);
}

const HINTS: Readonly<Record<number, string>> = {
  400: ' It refuses the request: a text with more tokens than the model takes, or settings that it does not know.',
  401: ' Pass its key with --endpoint-key-file.',
  403: ' Pass a key that it accepts with --endpoint-key-file.',
  404: ' Check the path, and the model of --endpoint-model.',
  413: ' The request is too large: a text is too long, or lower --endpoint-batch.',
  422: ' It refuses the request: too many texts (--endpoint-batch), or a text that is too long.',
};

/** The messages have no part of the reply, which may repeat texts or the key. */
function failed({ shown }: EndpointAddress, reason: string, status: number | undefined): TrawlError {
  return new TrawlError(
    status !== undefined && REFUSED_STATUSES.includes(status) ? 'ENDPOINT_REFUSED' : 'ENDPOINT_FAILED',
    `The encoder's endpoint ${shown} failed: ${reason}.${status === undefined ? hintOf(reason) : (HINTS[status] ?? '')}`,
    { details: { status } },
  );
}

/** What to do about a failure without an HTTP status. */
function hintOf(reason: string): string {
  return reason.startsWith('no connection') ? ' Check that the server runs, and the address.' : '';
}

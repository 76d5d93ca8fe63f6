import { TrawlError } from '../../errors.ts';
import type { Probe } from '../../manifest/endpoint-record.ts';
import { encodeVector } from '../../manifest/probe-vectors.ts';
import { ModelServers } from '../../model-server/model-servers.ts';
import type { InputType } from '../text-encoder.ts';
import { type EmbeddingReply, embeddingBody, readEmbeddings } from './embedding-api.ts';
import { type EndpointAddress, type EndpointFacts, type EndpointRoute, readFacts } from './endpoint-facts.ts';
import type { EndpointOptions } from './endpoint-options.ts';
import { LONG_PROBE, type ProbeText } from './probe-texts.ts';

/** How the texts of a request are sent. */
export interface SentSettings {
  readonly model: string | null;
  /** Whether TEI's `/embed` is to normalise. */
  readonly normalize: boolean;
  readonly prefixes: Readonly<Record<InputType, string>>;
  readonly added: Readonly<Record<InputType, Readonly<Record<string, unknown>>>>;
  /** Null until the first vectors are known. */
  readonly dimension: number | null;
}

/** Statuses of a request that is refused for its content: not valid, too large, too many tokens. */
const REFUSED_STATUSES = [400, 413, 422];

/** Whether a server refuses a request for its content, so that it would refuse it again. */
export function isRefusedContent(error: unknown): boolean {
  return error instanceof TrawlError && error.code === 'ENDPOINT_REFUSED';
}

/** Requests to the endpoints of one model. */
export class EndpointClient {
  readonly addresses: readonly EndpointAddress[];
  /** Requests at the same time to all endpoints. */
  readonly concurrency: number;
  readonly #servers: ModelServers;
  readonly #routes: (EndpointRoute | undefined)[];

  constructor(addresses: readonly EndpointAddress[], options: EndpointOptions) {
    this.addresses = addresses;
    this.#routes = addresses.map(() => undefined);
    const concurrency = options.requests ?? 8;
    this.concurrency = concurrency * addresses.length;
    this.#servers = new ModelServers(addresses.length, {
      apiKey: options.apiKey,
      timeoutMs: options.timeoutMs ?? 60_000,
      firstWaitMs: options.firstWaitMs ?? 250,
      maxWaitMs: options.maxWaitMs ?? 10_000,
      attempts: options.attempts ?? 5,
      concurrency,
      failed: (reason, { server, status }) => failed(addresses[server]!, reason, status),
    });
  }

  /** The facts of a server. Pages that it does not have are left out. */
  facts(server: number, wanted: string | undefined): Promise<EndpointFacts> {
    return readFacts(this.addresses[server]!, (url) => this.#page(server, url), wanted);
  }

  /**
   * Finds the route that a server has, by embedding a text.
   *
   * @throws TrawlError ENDPOINT_FAILED.
   */
  async findRoute(server: number, wanted: EndpointOptions['api'], settings: SentSettings): Promise<EndpointRoute> {
    const { routes, shown } = this.addresses[server]!;
    const candidates = routes.filter(({ api }) => wanted === undefined || api === wanted);
    if (candidates.length === 0) {
      throw new TrawlError(
        'CONFIG_INVALID',
        `--endpoint-api is ${wanted}, but the path of ${shown} is that of the other API.`,
      );
    }
    for (const route of candidates) {
      this.#routes[server] = route;
      try {
        await this.embed(['a'], 'passage', settings, { server });
        return route;
      } catch (error) {
        const isMissing = error instanceof TrawlError && [404, 405].includes(error.details.status as number);
        if (!isMissing || route === candidates.at(-1)) throw error;
      }
    }
    throw failed(this.addresses[server]!, 'it has no route for embeddings', undefined);
  }

  /** The route of the first server. */
  get route(): EndpointRoute {
    return this.#routes[0]!;
  }

  /** One request; `server` undefined: the least busy one. Errors: ENDPOINT_FAILED, CANCELLED. */
  async embed(
    texts: readonly string[],
    inputType: InputType,
    { model, normalize, prefixes, added, dimension }: SentSettings,
    { server, signal, onStart }: { server?: number; signal?: AbortSignal | undefined; onStart?: () => void } = {},
  ): Promise<EmbeddingReply> {
    const { api } = this.#routes[server ?? 0]!;
    const prefix = prefixes[inputType];
    const body = embeddingBody(api, {
      texts: texts.map((text) => prefix + text),
      model,
      normalize,
      added: added[inputType],
    });
    const reply = await this.#servers.send({
      url: (chosen) => this.#routes[chosen]!.url,
      body,
      server,
      signal,
      onStart,
    });
    return readEmbeddings(api, reply, { texts: texts.length, dimension });
  }

  /**
   * Embeds the probes on one server, each in a request of its own: alone, its tokens are counted, and a refused one is known.
   *
   * @throws TrawlError ENDPOINT_FAILED; a text that is refused for its length has no vector instead.
   */
  probe(server: number, texts: readonly ProbeText[], settings: SentSettings): Promise<Probe[]> {
    return Promise.all(
      texts.map(async ({ name, inputType, text }): Promise<Probe> => {
        try {
          const { vectors, tokens } = await this.embed([text], inputType, settings, { server });
          return { name, inputType, text, vector: encodeVector(vectors[0]!), tokens };
        } catch (error) {
          if (name !== LONG_PROBE || !isRefusedContent(error)) throw error;
          return { name, inputType, text, vector: null, tokens: null };
        }
      }),
    );
  }

  close(): void {
    this.#servers.close();
  }

  async #page(server: number, url: string): Promise<unknown> {
    try {
      return await this.#servers.send({ url: () => url, server, attempts: 2 });
    } catch (error) {
      const status = error instanceof TrawlError ? error.details.status : undefined;
      if (typeof status !== 'number' || [401, 403, 429, 503].includes(status)) throw error;
      return undefined;
    }
  }
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
    `The encoder's endpoint ${shown} failed: ${reason}.${status === undefined ? '' : (HINTS[status] ?? '')}`,
    { details: { ...(status === undefined ? {} : { status }) } },
  );
}

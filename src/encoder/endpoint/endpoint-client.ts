import { untilAborted } from '../../base/abort.ts';
import { encodeVector } from '../../base/base64-vector.ts';
import { asTrawlError, TrawlError } from '../../base/errors.ts';
import type { EmbeddingApi, Probe } from '../identity/endpoint-record.ts';
import { invalidConfig } from '../model/json-file.ts';
import { ModelServers } from '../model-server/model-servers.ts';
import type { InputType } from '../text-encoder.ts';
import { type EmbeddingReply, type EmbeddingRequest, embeddingBody, readEmbeddings } from './embedding-api.ts';
import {
  type EndpointAddress,
  type EndpointFacts,
  type EndpointRoute,
  parseEndpoints,
  readFacts,
} from './endpoint-facts.ts';
import type { EndpointOptions } from './endpoint-options.ts';
import { LONG_PROBE, type ProbeText } from './probes.ts';

/** How the texts of a request are sent, whatever the server. */
export interface EmbedSettings {
  readonly model: string | null;
  /** Whether TEI's `/embed` is to normalise. */
  readonly normalize: boolean;
  readonly prefixes: Readonly<Record<InputType, string>>;
  readonly added: Readonly<Record<InputType, Readonly<Record<string, unknown>>>>;
  /** Values of a vector of the endpoint. Null until the first vectors are known. */
  readonly dimension: number | null;
}

export interface SentSettings extends EmbedSettings {
  readonly routes: readonly EndpointRoute[];
}

/** Which earlier answer may be used, and when to stop waiting. */
export interface Freshness {
  /** `performance.now()` from which on an answer must have been asked for. */
  readonly since: number;
  readonly signal?: AbortSignal;
}

type Encoding = EmbeddingRequest['encoding'];

interface EmbedCall {
  /** Default: the least busy one. */
  readonly server?: number;
  /** Default: what the client knows of its servers. */
  readonly encoding?: Encoding;
  readonly signal?: AbortSignal;
  readonly onStart?: () => void;
}

/** Bytes of a value as JSON text, and of what surrounds the vectors of a reply. */
const BYTES_PER_VALUE = 32;
const BYTES_AROUND = 1024 * 1024;

/** Statuses of a request that is refused for its content: not valid, too large, too many tokens. */
const REFUSED_STATUSES: readonly (number | undefined)[] = [400, 413, 422];

/** Whether a server refuses a request for its content, so that it would refuse it again. */
export function isRefusedContent(error: unknown): boolean {
  return error instanceof TrawlError && error.code === 'ENDPOINT_REFUSED';
}

/**
 * Statuses that may be a refusal of the content: llama.cpp's 500 for a text with more tokens than its batch, and
 * text-embeddings-inference's 424 for a fault of its model.
 */
const FAULT_STATUSES: readonly (number | undefined)[] = [424, 500];

/** Whether one text of a request may be at fault for the error of all. */
export function mayBeOneText(error: unknown): boolean {
  return isRefusedContent(error) || FAULT_STATUSES.includes(statusOf(error));
}

/** Requests to the endpoints of one model. Several encoders may use it (`EndpointClients`). */
export class EndpointClient {
  readonly addresses: readonly EndpointAddress[];
  /** Requests at the same time to all endpoints. */
  readonly concurrency: number;
  readonly #servers: ModelServers;
  /** Answers about the servers, which several encoders use, with the time when they were asked for (`performance.now()`). */
  readonly #recent = new Map<string, { readonly begun: number; readonly result: Promise<unknown> }>();
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
      failed: (reason, { server, status, said }) => failed(addresses[server]!, reason, status, said),
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

  /** Finds a server's route of the API `wanted`, first `preferred`, by embedding. Throws CONFIG_INVALID, ENDPOINT_FAILED, CANCELLED. */
  findRoute(
    server: number,
    { wanted, preferred }: { readonly wanted: EndpointOptions['api']; readonly preferred: EmbeddingApi },
    settings: EmbedSettings,
    fresh: Freshness,
  ): Promise<EndpointRoute> {
    const { routes, shown } = this.addresses[server]!;
    const candidates = routes
      .filter(({ api }) => wanted === undefined || api === wanted)
      .toSorted((a, b) => Number(b.api === preferred) - Number(a.api === preferred));
    if (candidates.length === 0) {
      throw invalidConfig(`--endpoint-api is ${wanted}, but the path of ${shown} belongs to the other API.`);
    }
    const firstOf = async ([route, ...others]: readonly EndpointRoute[]): Promise<EndpointRoute> => {
      try {
        await this.#try(server, route!, settings);
        return route!;
      } catch (error) {
        if (others.length === 0 || ![404, 405].includes(statusOf(error)!)) throw error;
        return firstOf(others);
      }
    };
    return this.#shared(server, ['route', candidates, settings], fresh, () => firstOf(candidates));
  }

  /** Embeds a text. If a server refuses base64, it is asked for numbers, and so are all from then on. */
  async #try(server: number, route: EndpointRoute, others: EmbedSettings): Promise<void> {
    const settings = { ...others, routes: this.addresses.map(() => route) };
    const encoding = this.#encoding;
    try {
      await this.embed(['a'], 'passage', settings, { server, encoding });
    } catch (error) {
      const mayRefuseBase64 = encoding === 'base64' && [400, 422].includes(statusOf(error)!);
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
    { server, encoding = this.#encoding, signal, onStart }: EmbedCall = {},
  ): Promise<EmbeddingReply & { readonly server: number }> {
    const { api } = routes[server ?? 0]!;
    const sent = texts.map((text) => prefixes[inputType] + text);
    const body = embeddingBody(api, { texts: sent, model, normalize, encoding, added: added[inputType] });
    let answering = 0;
    let headers: Headers | undefined;
    const reply = await this.#servers.send({
      url: (chosen) => {
        answering = chosen;
        return routes[chosen]!.url;
      },
      body,
      texts: sent,
      server,
      maxReplyBytes: dimension === null ? undefined : texts.length * dimension * BYTES_PER_VALUE + BYTES_AROUND,
      signal,
      onStart,
      onHeaders: (own) => (headers = own),
    });
    return { ...readEmbeddings(api, reply, { texts: texts.length, dimension }, headers), server: answering };
  }

  /**
   * Embeds the probes on one server, each in its own request, so that its tokens are counted and a refusal is its own. Encoders with the
   * same probes and settings share the requests. A probe that is refused has no vector, and so has the long one if it fails in any way:
   * other texts may be shorter. Throws ENDPOINT_FAILED, ENDPOINT_REFUSED if every short probe is refused, CANCELLED.
   */
  probe(server: number, texts: readonly ProbeText[], settings: SentSettings, fresh: Freshness): Promise<Probe[]> {
    // Of recorded probes without their vectors, which may differ in their last bits.
    const own = texts.map(({ name, inputType, text }) => ({ name, inputType, text }));
    let refusal: unknown;
    const embedOne = async (probe: ProbeText): Promise<Probe> => {
      try {
        const { vectors, tokens } = await this.embed([probe.text], probe.inputType, settings, { server });
        const [vector] = vectors;
        if (!(vector instanceof Float32Array)) throw vector!;
        return { ...probe, vector: encodeVector(vector), tokens };
      } catch (error) {
        const isLong = probe.name === LONG_PROBE && asTrawlError(error).code === 'ENDPOINT_FAILED';
        if (!isLong && !isRefusedContent(error)) throw error;
        refusal ??= error;
        return { ...probe, vector: null, tokens: null };
      }
    };
    return this.#shared(server, ['probes', own, settings], fresh, async () => {
      const probes = await Promise.all(own.map(embedOne));
      if (probes.every(({ name, vector }) => name === LONG_PROBE || vector === null)) throw refusal;
      return probes;
    });
  }

  /** An answer about a server, shared while it is recent enough for each user, and newer than the last lost connection. No failures. */
  #shared<T>(server: number, what: unknown[], { since, signal }: Freshness, ask: () => Promise<T>): Promise<T> {
    const key = JSON.stringify([server, ...what]);
    let answer = this.#recent.get(key) as { readonly begun: number; readonly result: Promise<T> } | undefined;
    if (answer === undefined || answer.begun < Math.max(since, this.#lostAt[server]!)) {
      const asked = { begun: performance.now(), result: ask() };
      this.#recent.set(key, asked);
      asked.result.catch(() => {
        if (this.#recent.get(key) === asked) this.#recent.delete(key);
      });
      answer = asked;
    }
    return untilAborted(answer.result, signal);
  }

  close(): void {
    this.#servers.close();
  }

  async #page(server: number, url: string): Promise<unknown> {
    try {
      return await this.#servers.send({ url: () => url, server, attempts: 2 });
    } catch (error) {
      // An overloaded or starting server may have the page.
      const status = statusOf(error);
      const isMissing = status === 501 || (status !== undefined && status < 500 && status !== 408 && status !== 429);
      if (!isMissing) throw error;
      return undefined;
    }
  }
}

export interface ClientLease {
  readonly client: EndpointClient;
  /** The last release of a client cancels its requests. Call it once. */
  release(): void;
}

/** Encoders with the same addresses, key, model and limits share a client: its bound on requests and its probes are for all indexes. */
export class EndpointClients {
  readonly #shared = new Map<string, { readonly client: EndpointClient; users: number }>();

  /** @throws TrawlError CONFIG_INVALID for an address that is not valid. */
  lease(text: string, options: EndpointOptions): ClientLease {
    const addresses = parseEndpoints(text);
    const { apiKey, model, requests, timeoutMs, attempts, firstWaitMs, maxWaitMs } = options;
    const urls = addresses.map(({ routes }) => routes);
    const key = JSON.stringify([urls, apiKey, model, requests, timeoutMs, attempts, firstWaitMs, maxWaitMs]);
    const shared = this.#shared.get(key) ?? { client: new EndpointClient(addresses, options), users: 0 };
    this.#shared.set(key, shared);
    shared.users++;
    return {
      client: shared.client,
      release: () => {
        shared.users--;
        if (shared.users > 0) return;
        this.#shared.delete(key);
        shared.client.close();
      },
    };
  }
}

function statusOf(error: unknown): number | undefined {
  return error instanceof TrawlError ? error.details.status : undefined;
}

const HINTS: Readonly<Record<number, string>> = {
  400: ' It refuses the request: a text with more tokens than the model takes, or settings that it does not know.',
  401: ' Pass its key with --endpoint-key-file.',
  403: ' Pass a key that it accepts with --endpoint-key-file.',
  404: ' Check the path, and the model of --endpoint-model.',
  413: ' The request is too large: a text is too long, or lower --endpoint-batch.',
  422: ' It refuses the request: too many texts (--endpoint-batch), or a text that is too long.',
  500: ' It has a fault, or a text is longer than it takes (llama.cpp: start it with a larger physical batch, -ub).',
};

function failed({ shown }: EndpointAddress, reason: string, status: number | undefined, said: string): TrawlError {
  const unreachable = reason.startsWith('no connection') ? ' Check that the server runs, and the address.' : '';
  const hint = status === undefined ? unreachable : (HINTS[status] ?? '');
  return new TrawlError(
    REFUSED_STATUSES.includes(status) ? 'ENDPOINT_REFUSED' : 'ENDPOINT_FAILED',
    `The encoder's endpoint ${shown} failed: ${reason}${said}.${hint}`,
    { details: { status, fault: reason } },
  );
}

import { cancelled, throwIfCancelled } from '../src/abort.ts';
import { TrawlError } from '../src/errors.ts';
import { bodyParts, dropBody, fetchUntilAborted } from '../src/response-body.ts';
import { type RetryLimits, TransientFailure } from '../src/transfer-retries.ts';
import type { HubSettings } from './hub-settings.ts';
import { RETRY_LIMITS } from './retry.ts';

export interface ClientOptions {
  readonly retry?: Partial<RetryLimits> | undefined;
  /** A request that receives nothing for this long counts as failed, in milliseconds. Default 30,000. */
  readonly stallMs?: number | undefined;
}

/** A reply whose body is read in chunks, each within the stall limit. */
export interface HubReply {
  readonly status: number;
  readonly headers: Headers;
  /** Throws TransientFailure if the connection breaks or stalls. Ends the request if the consumer stops early. */
  body(): AsyncGenerator<Uint8Array>;
  /** Ends the request without reading the body. */
  drop(): Promise<void>;
}

const MAX_REDIRECTS = 10;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

/** Requests to one hub. The token is sent only to the hub's own origin, whatever redirects and links say. */
export class HubClient {
  readonly settings: HubSettings;
  readonly limits: RetryLimits;
  readonly #stallMs: number;
  readonly #origin: string;

  /** @throws TrawlError HUB_OFFLINE */
  constructor(settings: HubSettings, { retry = {}, stallMs = 30_000 }: ClientOptions = {}) {
    if (settings.offline) {
      throw new TrawlError(
        'HUB_OFFLINE',
        'HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) is set, so nothing is fetched from the hub. Unset it, or name a ' +
          'folder that has the files.',
      );
    }
    this.settings = settings;
    this.limits = { ...RETRY_LIMITS, ...retry };
    this.#stallMs = stallMs;
    this.#origin = new URL(settings.endpoint).origin;
  }

  /** Follows redirects and returns a reply of any other status. A single attempt: the caller handles TransientFailure. */
  async get(address: string, headers: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<HubReply> {
    let url = new URL(address);
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const reply = await this.#getOnce(url, headers, signal);
      const location = REDIRECTS.includes(reply.status) ? reply.headers.get('location') : null;
      if (location === null) return reply;
      await reply.drop();
      const next = URL.canParse(location, url.href) ? new URL(location, url) : undefined;
      if (
        next === undefined ||
        !/^https?:$/.test(next.protocol) ||
        (url.protocol === 'https:' && next.protocol === 'http:')
      ) {
        throw new TrawlError(
          'HUB_REPLY_INVALID',
          `${url.origin} redirects to ${JSON.stringify(location.slice(0, 200))}, which is not allowed.`,
        );
      }
      url = next;
    }
    throw new TrawlError('HUB_REPLY_INVALID', `${address} redirects more than ${MAX_REDIRECTS} times.`);
  }

  async #getOnce(
    url: URL,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<HubReply> {
    throwIfCancelled(signal);
    const { token } = this.settings;
    const watch = new StallWatch(this.#stallMs, signal);
    try {
      const response = await fetchUntilAborted(url, {
        redirect: 'manual',
        signal: watch.signal,
        headers: {
          'user-agent': 'trawl',
          // Ranges and content-length of a compressed body are not those of the file.
          'accept-encoding': 'identity',
          ...headers,
          ...(token !== undefined && url.origin === this.#origin ? { authorization: `Bearer ${token}` } : {}),
        },
      });
      return {
        status: response.status,
        headers: response.headers,
        body: () => chunksOf(response, watch),
        drop: async () => {
          dropBody(response);
          watch.end();
        },
      };
    } catch (error) {
      watch.end();
      throw watch.failure(error);
    }
  }
}

async function* chunksOf(response: Response, watch: StallWatch): AsyncGenerator<Uint8Array> {
  try {
    for await (const part of bodyParts(response, watch.signal)) {
      // Do not count the consumer's time as a stall of the server.
      watch.pause();
      yield part;
      watch.resume();
    }
  } catch (error) {
    throw watch.failure(error);
  } finally {
    watch.end();
  }
}

/** Aborts a request that receives nothing for `limitMs`, or when the caller's signal aborts. */
class StallWatch {
  readonly #controller = new AbortController();
  readonly #limitMs: number;
  readonly #outer: AbortSignal | undefined;
  readonly #onOuter = (): void => this.#controller.abort();
  #timer: NodeJS.Timeout | undefined;
  #stalled = false;

  constructor(limitMs: number, outer: AbortSignal | undefined) {
    this.#limitMs = limitMs;
    this.#outer = outer;
    outer?.addEventListener('abort', this.#onOuter, { once: true });
    this.resume();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  resume(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#stalled = true;
      this.#controller.abort();
    }, this.#limitMs);
  }

  pause(): void {
    clearTimeout(this.#timer);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener('abort', this.#onOuter);
  }

  /** Translates an error thrown by fetch. */
  failure(error: unknown): Error {
    if (this.#outer?.aborted) return cancelled();
    if (this.#stalled)
      return new TransientFailure(`nothing was received for ${this.#limitMs / 1000} s`, { cause: error });
    // fetch has one error for all network failures; its cause names the failure.
    const { cause, message } = error as { cause?: { code?: string; message?: string }; message?: string };
    const reason = cause?.code ?? cause?.message ?? message ?? String(error);
    return new TransientFailure(`the connection failed (${reason})`, { cause: error });
  }
}

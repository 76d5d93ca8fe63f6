import { TrawlError } from '../../src/base/errors.ts';
import type { RetryPolicy, TransferPolicy } from '../../src/base/net/retries.ts';
import { type WatchedReply, watchedFetch } from '../../src/base/net/watched-fetch.ts';
import { defined } from '../../src/base/objects.ts';
import type { HubSettings } from './hub-settings.ts';

export interface ClientOptions {
  readonly retry?: Partial<RetryPolicy>;
  /** A request that receives nothing for this long counts as failed, in milliseconds. Default 30,000. */
  readonly stallMs?: number;
}

const RETRIES: TransferPolicy = {
  attempts: 6,
  firstWaitMs: 1000,
  maxWaitMs: 30_000,
  maxRetryAfterMs: 300_000,
  code: 'HUB_UNREACHABLE',
  advice:
    'The received data is kept: run the same command again later to resume. If the error persists, check the network and HF_ENDPOINT.',
};
const MAX_REDIRECTS = 10;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
const CHECK_SERVER = 'Check HF_ENDPOINT, and whether a proxy or a login page answers in its place.';

/** Requests to one hub. The token is sent only to the hub's own origin, whatever redirects and links say. */
export class HubClient {
  readonly settings: HubSettings;
  readonly retries: TransferPolicy;
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
    this.retries = { ...RETRIES, ...defined(retry) };
    this.#stallMs = stallMs;
    this.#origin = new URL(settings.endpoint).origin;
  }

  /** Follows redirects and returns a reply of any other status. A single attempt: the caller handles TransientFailure. */
  async get(address: string, headers: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<WatchedReply> {
    let url = new URL(address);
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const reply = await this.#getOnce(url, headers, signal);
      const location = REDIRECTS.includes(reply.status) ? reply.headers.get('location') : null;
      if (location === null) return reply;
      reply.drop();
      const next = URL.canParse(location, url.href) ? new URL(location, url) : undefined;
      if (
        next === undefined ||
        !/^https?:$/.test(next.protocol) ||
        (url.protocol === 'https:' && next.protocol === 'http:')
      ) {
        throw new TrawlError(
          'HUB_REPLY_INVALID',
          `${url.origin} redirects to ${JSON.stringify(location.slice(0, 200))}; expected an address of https, or of http from http. ` +
            CHECK_SERVER,
        );
      }
      url = next;
    }
    throw new TrawlError('HUB_REPLY_INVALID', `${address} redirects more than ${MAX_REDIRECTS} times. ${CHECK_SERVER}`);
  }

  #getOnce(
    url: URL,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<WatchedReply> {
    const { token } = this.settings;
    return watchedFetch(url.href, {
      stallMs: this.#stallMs,
      signal,
      headers: {
        'user-agent': 'trawl',
        // Ranges and content-length of a compressed body are not those of the file.
        'accept-encoding': 'identity',
        ...headers,
        ...(token !== undefined && url.origin === this.#origin ? { authorization: `Bearer ${token}` } : {}),
      },
    });
  }
}

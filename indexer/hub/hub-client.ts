import { type ErrorCode, TrawlError } from '../../src/base/errors.ts';
import { type RetryPolicy, retryAfterMs, type TransferPolicy, TransientFailure } from '../../src/base/net/retries.ts';
import { type WatchedReply, watchedFetch } from '../../src/base/net/watched-fetch.ts';
import { defined } from '../../src/base/objects.ts';
import type { HubSettings } from './hub-settings.ts';

export interface ClientOptions {
  readonly retry?: Partial<RetryPolicy>;
  /** A request that receives nothing for this long counts as failed, in milliseconds. Default 30,000. */
  readonly stallMs?: number;
}

/** What a request asks for, for the error message of a refusal. */
interface Requested {
  /** `org/name`, or `datasets/org/name`: the address of the repository's page. */
  readonly repository: string;
  readonly revision: string;
  readonly path?: string;
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
  constructor(settings: HubSettings, { retry, stallMs = 30_000 }: ClientOptions = {}) {
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
      if (next?.protocol !== 'https:' && !(next?.protocol === 'http:' && url.protocol === 'http:')) {
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
        // Range and content-length of a compressed body would not be the file's.
        'accept-encoding': 'identity',
        ...headers,
        ...(token !== undefined && url.origin === this.#origin ? { authorization: `Bearer ${token}` } : {}),
      },
    });
  }

  /** The error for a reply that refuses a request, by its status and the hub's X-Error-Code. */
  failure({ status, headers }: WatchedReply, { repository, revision, path }: Requested): TrawlError | TransientFailure {
    if (status === 408 || status === 429 || status >= 500) {
      return new TransientFailure(`the server replies ${status}`, { retryAfterMs: retryAfterMs(headers) });
    }
    const { endpoint, token } = this.settings;
    const page = `${endpoint}/${repository}`;
    const quoted = quotedMessage(headers);
    const hubCode = headers.get('x-error-code') ?? '';
    const error = (code: ErrorCode, message: string) =>
      new TrawlError(code, message, { details: { status, hubCode, repository } });
    if (hubCode === 'GatedRepo' || status === 403) {
      const what = hubCode === 'GatedRepo' ? 'is gated' : `is refused (${status})`;
      const way =
        token === undefined
          ? `, then set HF_TOKEN to a token of that account (or run \`hf auth login\`).`
          : ' with the account of the token, and make sure that the token may read gated repositories.';
      return error('HUB_ACCESS_DENIED', `${repository} ${what}${quoted}. Accept its terms at ${page}${way}`);
    }
    if (status === 401 && token !== undefined) {
      return error(
        'HUB_ACCESS_DENIED',
        `The hub does not accept the token for ${repository}${quoted}. Create a new one at ` +
          `${endpoint}/settings/tokens, or unset HF_TOKEN for a public repository.`,
      );
    }
    if (status === 401 && hubCode !== '' && hubCode !== 'RepoNotFound') {
      return error(
        'HUB_ACCESS_DENIED',
        `${repository} needs a token${quoted}. Set HF_TOKEN, or run \`hf auth login\`.`,
      );
    }
    if (status !== 401 && status !== 404) {
      return error('HUB_REPLY_INVALID', `${endpoint} replies ${status}; expected 200${quoted}. Check HF_ENDPOINT.`);
    }
    if (hubCode === 'RevisionNotFound') {
      return error(
        'HUB_NOT_FOUND',
        `${repository} has no revision ${JSON.stringify(revision)}. Give a branch, a tag or a full commit hash; ` +
          `${page}/commits/main lists them.`,
      );
    }
    if (hubCode === 'EntryNotFound' || (path !== undefined && hubCode === '')) {
      return error('HUB_NOT_FOUND', `${repository} has no file ${JSON.stringify(path ?? '')} at ${revision}.`);
    }
    const way =
      token === undefined
        ? 'or it is private. Check the spelling; for a private repository set HF_TOKEN.'
        : 'or the token has no access to it. Check the spelling and the rights of the token.';
    return error('HUB_NOT_FOUND', `The repository ${page} does not exist, ${way}`);
  }
}

/** The hub's error message in parentheses, printable characters only; empty if there is none. */
function quotedMessage(headers: Headers): string {
  const text = (headers.get('x-error-message') ?? '').replaceAll(/[^\x20-\x7e]/g, ' ').trim();
  return text === '' ? '' : ` ("${text.slice(0, 200)}")`;
}

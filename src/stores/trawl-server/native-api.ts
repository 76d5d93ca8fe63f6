import { ERROR_CODES, type ErrorCode, TrawlError } from '../../base/errors.ts';
import { parseServerUrl } from '../../encoder/model-server/server-url.ts';
import { parseExactly } from '../../index/passages/exact-numbers.ts';
import type { SearchResult } from './native-replies.ts';
import { NoReply, type RepeatedRequestOptions, type Reply, repeatedRequest } from './repeated-request.ts';

export type NativeApiOptions = Omit<RepeatedRequestOptions, 'signal'>;

export interface Accepted {
  readonly ok: true;
  readonly json: object;
  readonly state: string | null;
}

/** A reply, or the error that the server answered. */
export type NativeReply =
  | Accepted
  | { readonly ok: false; readonly status: number; readonly code: string | undefined; readonly message: string };

/** Sends requests of Trawl's own API to a running server. Waits and asks again while it answers 429 or 503, or not at all. */
export class NativeApi {
  /** Without a slash at the end. */
  readonly url: string;
  readonly #options: NativeApiOptions;

  /** @param url of the server, also with the path of an index: `http://host:8000/indexes/NAME`. */
  constructor(url: string, options: NativeApiOptions = {}) {
    this.url = url.replace(/\/+$/, '');
    this.#options = options;
  }

  /**
   * Sends a body by POST, or asks by GET without one. `JSON.stringify` writes numbers of the reply that a double does not keep, such as
   * ids beyond 2^53, as they came.
   *
   * @throws TrawlError CONFIG_INVALID if no try is answered, or an answer with status 200 is not JSON; CANCELLED.
   */
  async send(path: string, body: object | undefined, signal: AbortSignal | undefined): Promise<NativeReply> {
    let reply: Reply;
    try {
      reply = await repeatedRequest(this.url + path, body, { ...this.#options, signal });
    } catch (error) {
      if (!(error instanceof NoReply)) throw error;
      throw this.failed(`${error.message}, also after ${error.tries} tries`);
    }
    if (reply.status === 200) return { ok: true, json: this.#parsed(reply.text), state: reply.state };
    let error: { code?: unknown; message?: unknown } | undefined;
    try {
      error = (JSON.parse(reply.text) as { error?: typeof error } | null)?.error;
    } catch {
      // A proxy, for example, answers in HTML.
    }
    return {
      ok: false,
      status: reply.status,
      code: typeof error?.code === 'string' ? error.code : undefined,
      message: typeof error?.message === 'string' ? error.message : '',
    };
  }

  /** A reply with status 200. @throws TrawlError as `send`; for a refused request with the server's code, if it is one of Trawl's. */
  async ask(path: string, body: object | undefined, signal: AbortSignal | undefined): Promise<Accepted> {
    const reply = await this.send(path, body, signal);
    if (reply.ok) return reply;
    const { status, code, message } = reply;
    if (code === undefined) throw this.failed(`it answered ${status}`);
    throw errorOf({ code, message: `${this.url} refuses the request: ${message}` });
  }

  failed(reason: string): TrawlError {
    return new TrawlError('CONFIG_INVALID', `${this.url} cannot be asked: ${reason}. Expected a Trawl server.`);
  }

  #parsed(text: string): object {
    try {
      const json = parseExactly(text);
      if (typeof json === 'object' && json !== null) return json;
    } catch {
      // Reported below.
    }
    throw this.failed('its reply is not JSON');
  }
}

export function errorOf({ code, message, maxTied }: Extract<SearchResult, { ok: false }>['error']): TrawlError {
  const known = Object.hasOwn(ERROR_CODES, code) ? (code as ErrorCode) : 'INTERNAL';
  return new TrawlError(known, known === code ? message : `${code}: ${message}`, { details: { maxTied } });
}

/**
 * The URL of a Trawl server, without a slash at the end. Paths are appended to it, and it is written in messages, progress files and
 * reports, so it has no user, password, query or fragment.
 *
 * @throws TrawlError CONFIG_INVALID. The message does not repeat the URL, which may have a password.
 */
export function trawlServerUrl(text: string): string {
  parseServerUrl(text, { what: 'Trawl server', keyOption: '--key-file' });
  if (/[?#]/.test(text)) {
    throw new TrawlError(
      'CONFIG_INVALID',
      'The URL of the Trawl server has a query or fragment (? or #); expected http://HOST:PORT, or with /indexes/NAME. Pass a key with --key-file.',
    );
  }
  return text.replace(/\/+$/, '');
}

import { TrawlError } from '../../base/errors.ts';
import { parseExactly } from '../../index/passages/exact-numbers.ts';
import { NoReply, type RepeatedRequestOptions, type Reply, repeatedRequest } from './repeated-request.ts';

export type NativeApiOptions = Omit<RepeatedRequestOptions, 'signal'>;

/** A reply, or the error that the server answered. */
export type NativeReply =
  | { readonly ok: true; readonly json: object; readonly state: string | null }
  | { readonly ok: false; readonly status: number; readonly code: string | undefined; readonly message: string };

/** The requests of Trawl's own API, to a running server. Waits and asks again while it answers 429 or 503, or not at all. */
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
   * Sends a body, or asks without one by GET. Numbers of the reply whose notation a double does not keep, such as ids beyond 2^53, are
   * written by `JSON.stringify` as they came.
   *
   * @throws TrawlError CONFIG_INVALID if no try is answered, or with something else than JSON; CANCELLED.
   */
  async send(path: string, body: object | undefined, signal: AbortSignal | undefined): Promise<NativeReply> {
    let reply: Reply;
    try {
      reply = await repeatedRequest(`${this.url}${path}`, body, { ...this.#options, signal });
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

  /** Of a server that cannot be used. */
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

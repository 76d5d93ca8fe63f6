import { cancelled, throwIfCancelled } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { abortableFetch, bodyChunks, dropBody } from '../../base/net/abortable-fetch.ts';
import { retryAfterMs } from '../../base/net/retries.ts';
import { ServerChoice } from './server-choice.ts';

interface FailureDetails {
  /** The number of the server. */
  readonly server: number;
  /** Status of the reply, if there was one. */
  readonly status?: number | undefined;
}

interface ModelServersOptions {
  /** Sent as `authorization: Bearer`. Never part of a message. */
  readonly apiKey?: string | undefined;
  /** Time limit of one request, in milliseconds. */
  readonly timeoutMs: number;
  /** Pause before the first retry, in milliseconds; it doubles with each failure in a row. */
  readonly firstWaitMs: number;
  /** Longest pause, also if the server asks for a longer one. */
  readonly maxWaitMs: number;
  /** Attempts of a request that is refused with 408, 429, 502, 503 or 504, or that gets no answer; for other 5xx see `ModelServers`. */
  readonly attempts: number;
  /** Requests at the same time, for each server. */
  readonly concurrency: number;
  /** Makes the error of a request. Messages must have no part of the reply, which may repeat texts or the key. */
  readonly failed: (reason: string, details: FailureDetails) => TrawlError;
  /** Called when a server may have been started again: no connection, a lost one, or 502 of a gateway in front of it. */
  readonly onLost?: ((server: number) => void) | undefined;
}

interface ServerRequest {
  /** The address for a server, by the number of the server. */
  readonly url: (server: number) => string;
  /** JSON; undefined: a GET. */
  readonly body?: string | undefined;
  /** The only server that may answer. Default: the one with the fewest running requests. */
  readonly server?: number | undefined;
  /** Default: the options' own. */
  readonly attempts?: number | undefined;
  /** Most bytes of the reply. Default: 256 MiB. */
  readonly maxReplyBytes?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with the headers of the reply whose JSON is returned. */
  readonly onHeaders?: ((headers: Headers) => void) | undefined;
  /** Called when the request first gets a slot. */
  readonly onStart?: (() => void) | undefined;
}

/** Most bytes of a reply: 2,048 vectors of 4,096 values as JSON text are less. */
const MAX_REPLY_BYTES = 256 * 1024 * 1024;
const RETRIED_STATUSES = [408, 429, 503];
/** Answers of proxies in front of a server that is starting or restarting. */
const BAD_GATEWAY = 502;
const GATEWAY_STATUSES = [BAD_GATEWAY, 504];
/** The route or the method does not exist: asking again is of no use. */
const NOT_IMPLEMENTED = 501;
/** Attempts after any other 5xx, which may be the fault of this server or of the request. */
const ATTEMPTS_AFTER_FAULT = 2;

/**
 * Requests to servers of models that give the same answers. A request goes to the server with the fewest running requests. A server
 * that is overloaded or does not answer gets no further request until its pause is over; its requests go to the other servers.
 *
 * Another 5xx may be the fault of the server or of the request. The request is sent once more, and the server pauses, if another server
 * can answer it or if the request has its own number of attempts. Else the error is the request's alone: the only server goes on.
 */
export class ModelServers {
  readonly #options: ModelServersOptions;
  readonly #choice: ServerChoice;
  readonly #count: number;
  readonly #closed = new AbortController();

  /** @param count number of servers, at least 1. */
  constructor(count: number, options: ModelServersOptions) {
    this.#options = options;
    this.#choice = new ServerChoice(count, options);
    this.#count = count;
  }

  /**
   * Sends a request until it is answered, and returns the JSON of the reply.
   *
   * @throws TrawlError CANCELLED after an abort or `close`, else the error of `failed`.
   */
  async send(request: ServerRequest): Promise<unknown> {
    const { attempts: most = this.#options.attempts, signal } = request;
    const ended = AbortSignal.any([this.#closed.signal, ...(signal === undefined ? [] : [signal])]);
    let started = false;
    for (let attempt = 1; ; attempt++) {
      const slot = await this.#choice.acquire(request.server, ended);
      if (!started) request.onStart?.();
      started = true;
      const answer = await this.#attempt(request, slot.server, ended).catch((error: unknown) => {
        slot.release('answered');
        throw error;
      });
      if ('json' in answer) {
        slot.release('answered');
        return answer.json;
      }
      const { reason, status, waitMs, isFault = false } = answer;
      const attempts = isFault ? this.#attemptsAfterFault(request) : most;
      if (attempts === 1) slot.release('answered');
      else slot.release('failed', waitMs);
      if (attempt < attempts) continue;
      throw this.#options.failed(attempt === 1 ? reason : `${reason}, ${attempt} times`, {
        server: slot.server,
        status,
      });
    }
  }

  #attemptsAfterFault({ server, attempts }: ServerRequest): number {
    if (attempts !== undefined) return Math.min(attempts, ATTEMPTS_AFTER_FAULT);
    return this.#count > 1 && server === undefined ? ATTEMPTS_AFTER_FAULT : 1;
  }

  /** Cancels running and waiting requests. */
  close(): void {
    this.#closed.abort();
  }

  /** One attempt: the reply's JSON, or why the request is to be repeated. */
  async #attempt(
    { url, body, maxReplyBytes = MAX_REPLY_BYTES, onHeaders }: ServerRequest,
    server: number,
    ended: AbortSignal,
  ): Promise<{ json: unknown } | { reason: string; waitMs?: number | undefined; status?: number; isFault?: boolean }> {
    const { apiKey, timeoutMs, onLost } = this.#options;
    let status: number | undefined;
    const failed = (reason: string): TrawlError => this.#options.failed(reason, { server, status });
    throwIfCancelled(ended);
    const signal = AbortSignal.any([ended, AbortSignal.timeout(timeoutMs)]);
    try {
      const response = await abortableFetch(url(server), {
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          accept: 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
        },
        ...(body === undefined ? {} : { body }),
        redirect: 'manual',
        signal,
      });
      ({ status } = response);
      if (response.ok) {
        const text = await readText(response, { maxBytes: maxReplyBytes, failed, signal });
        const json = parsed(text, () => failed('a reply that is not JSON'));
        onHeaders?.(response.headers);
        return { json };
      }
      dropBody(response);
      const reason = `status ${status}`;
      if (status >= 300 && status < 400) {
        throw failed(`a redirect (${reason}), which is not followed. Name the address that it leads to`);
      }
      if (RETRIED_STATUSES.includes(status) || GATEWAY_STATUSES.includes(status)) {
        if (status === BAD_GATEWAY) onLost?.(server);
        return { reason, waitMs: retryAfterMs(response.headers), status };
      }
      if (status >= 500 && status !== NOT_IMPLEMENTED) return { reason, status, isFault: true };
      throw failed(reason);
    } catch (error) {
      if (ended.aborted) throw cancelled();
      if (error instanceof TrawlError) throw error;
      const isTimeout = (error as Error).name === 'TimeoutError';
      if (!isTimeout) onLost?.(server);
      return { reason: isTimeout ? `no answer within ${timeoutMs} ms` : `no connection${causeOf(error)}` };
    }
  }
}

/** The code of a failed connection, such as ECONNREFUSED. */
function causeOf(error: unknown): string {
  const code: unknown = ((error as Error).cause as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' && /^[A-Z_0-9]{3,60}$/.test(code) ? ` (${code})` : '';
}

async function readText(
  response: Response,
  {
    maxBytes,
    failed,
    signal,
  }: { readonly maxBytes: number; readonly failed: (reason: string) => TrawlError; readonly signal: AbortSignal },
): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of bodyChunks(response, signal)) {
    bytes += part.length;
    if (bytes > maxBytes) throw failed(`a reply of more than ${maxBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function parsed(text: string, failure: () => TrawlError): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw failure();
  }
}

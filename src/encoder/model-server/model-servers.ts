import { cancelled, throwIfCancelled } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { abortableFetch, bodyChunks, connectionFault, dropBody } from '../../base/net/abortable-fetch.ts';
import { retryAfterMs } from '../../base/net/retries.ts';
import { ServerChoice, type ServerLimits } from './server-choice.ts';
import { statedReason } from './stated-reason.ts';

interface ModelServersOptions extends ServerLimits {
  /** Sent as `authorization: Bearer`. Never part of a message. */
  readonly apiKey?: string;
  /** Time limit of one request, in milliseconds. */
  readonly timeoutMs: number;
  /** Attempts of a request that is refused with 408, 429, 502, 503 or 504, or that gets no answer; for other 5xx see `ModelServers`. */
  readonly attempts: number;
  /** Makes the error of a request. `said` is for messages to the operator alone: what the server says, without texts and keys. */
  readonly failed: (reason: string, details: RequestFault) => TrawlError;
  /** Called when a server may have been started again: no connection, a lost one, or 502 of a gateway in front of it. */
  readonly onLost?: (server: number) => void;
}

interface RequestFault {
  readonly server: number;
  readonly status?: number;
  /** Follows the reason: empty, or a space and a quotation in parentheses. */
  readonly said: string;
}

interface ServerRequest {
  readonly url: (server: number) => string;
  /** JSON; undefined: a GET. */
  readonly body?: string;
  /** The texts in the body, which messages do not repeat. */
  readonly texts?: readonly string[];
  /** The only server that may answer. Default: the one with the fewest running requests. */
  readonly server?: number;
  /** Default: the options' own. */
  readonly attempts?: number;
  /** Most bytes of the reply. Default: 256 MiB. */
  readonly maxReplyBytes?: number;
  readonly signal?: AbortSignal;
  /** Called with the headers of the reply whose JSON is returned. */
  readonly onHeaders?: (headers: Headers) => void;
  readonly onStart?: () => void;
}

interface FailedAttempt {
  readonly reason: string;
  /** What the server says, as a part of a sentence. */
  readonly said?: string;
  readonly status?: number;
  /** The pause that the server asks for, in milliseconds. */
  readonly waitMs?: number;
  /** Whether the status is another 5xx, for which the server or the request may be at fault. */
  readonly isFault?: boolean;
}

/** Most bytes of a reply: 2,048 vectors of 4,096 values as JSON text are less. */
const MAX_REPLY_BYTES = 256 * 1024 * 1024;
const MAX_REASON_BYTES = 64 * 1024;
const REASON_MS = 1_000;
/** 502 and 504 are answers of proxies in front of a server that is starting or restarting. */
const BAD_GATEWAY = 502;
const RETRIED_STATUSES = [408, 429, BAD_GATEWAY, 503, 504];
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

  constructor(count: number, options: ModelServersOptions) {
    this.#options = options;
    this.#choice = new ServerChoice(count, options);
    this.#count = count;
  }

  /** Sends a request until it is answered; returns the reply's JSON. Throws CANCELLED, or the error of `failed`. */
  async send(request: ServerRequest): Promise<unknown> {
    const { attempts: most = this.#options.attempts, signal } = request;
    const ended = AbortSignal.any([this.#closed.signal, ...(signal === undefined ? [] : [signal])]);
    for (let attempt = 1; ; attempt++) {
      const server = await this.#choice.acquire(request.server, ended);
      if (attempt === 1) request.onStart?.();
      const answer = await this.#attempt(request, server, ended).catch((error: unknown) => {
        this.#choice.release(server, 'answered');
        throw error;
      });
      if ('json' in answer) {
        this.#choice.release(server, 'answered');
        return answer.json;
      }
      const { reason, said = '', status, waitMs, isFault = false } = answer;
      const attempts = isFault ? this.#attemptsAfterFault(request) : most;
      this.#choice.release(server, attempts === 1 ? 'answered' : 'failed', waitMs);
      if (attempt < attempts) continue;
      throw this.#options.failed(attempt === 1 ? reason : `${reason}, ${attempt} times`, { server, status, said });
    }
  }

  #attemptsAfterFault({ server, attempts }: ServerRequest): number {
    if (attempts !== undefined) return Math.min(attempts, ATTEMPTS_AFTER_FAULT);
    return this.#count > 1 && server === undefined ? ATTEMPTS_AFTER_FAULT : 1;
  }

  close(): void {
    this.#closed.abort();
  }

  /** One attempt. Throws the error of `failed` for a request that is not to be repeated, and CANCELLED. */
  async #attempt(
    { url, body, texts = [], maxReplyBytes = MAX_REPLY_BYTES, onHeaders }: ServerRequest,
    server: number,
    ended: AbortSignal,
  ): Promise<{ readonly json: unknown } | FailedAttempt> {
    const { apiKey, timeoutMs, onLost } = this.#options;
    let status: number | undefined;
    const failed = (reason: string, said = ''): TrawlError => this.#options.failed(reason, { server, status, said });
    throwIfCancelled(ended);
    const signal = AbortSignal.any([ended, AbortSignal.timeout(timeoutMs)]);
    const headers: Record<string, string> = { accept: 'application/json' };
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (apiKey !== undefined) headers.authorization = `Bearer ${apiKey}`;
    try {
      const method = body === undefined ? 'GET' : 'POST';
      const response = await abortableFetch(url(server), { method, headers, body, redirect: 'manual', signal });
      ({ status } = response);
      if (response.ok) {
        const text = await readText(response, signal, maxReplyBytes);
        if (text === undefined) throw failed(`a reply of more than ${maxReplyBytes} bytes`);
        const json = parseReply(text, failed);
        onHeaders?.(response.headers);
        return { json };
      }
      const reason = `status ${status}`;
      if (status >= 300 && status < 400) {
        dropBody(response);
        throw failed(`a redirect (${reason}), which is not followed. Name the address that it leads to`);
      }
      const stated = statedReason(await readReason(response, ended), { texts, apiKey });
      const said = stated === undefined ? '' : ` (${JSON.stringify(stated)})`;
      if (RETRIED_STATUSES.includes(status)) {
        if (status === BAD_GATEWAY) onLost?.(server);
        return { reason, said, waitMs: retryAfterMs(response.headers), status };
      }
      if (status >= 500 && status !== NOT_IMPLEMENTED) return { reason, said, status, isFault: true };
      throw failed(reason, said);
    } catch (error) {
      if (ended.aborted) throw cancelled();
      if (error instanceof TrawlError) throw error;
      const isTimeout = (error as Error).name === 'TimeoutError';
      if (!isTimeout) onLost?.(server);
      return { reason: isTimeout ? `no answer within ${timeoutMs} ms` : `no connection (${connectionFault(error)})` };
    }
  }
}

/** The JSON of a reply. The error says what the text looks like, and never has a part of it. */
function parseReply(text: string, failed: (reason: string) => TrawlError): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    if (text.trim() === '') throw failed('an empty reply');
    if (text.trimStart().startsWith('<')) throw failed('a reply that is not JSON, but HTML or XML');
    const hasNaN = /\b(?:NaN|Infinity)\b/.test(text);
    throw failed(hasNaN ? 'a reply that is not JSON: it has NaN or Infinity' : 'a reply that is not JSON');
  }
}

/** The reply of a server that fails. Empty if it is long, or does not come soon. */
async function readReason(response: Response, ended: AbortSignal): Promise<string> {
  const signal = AbortSignal.any([ended, AbortSignal.timeout(REASON_MS)]);
  try {
    return (await readText(response, signal, MAX_REASON_BYTES)) ?? '';
  } catch {
    return '';
  }
}

/** The text of a reply; undefined if it has more bytes. */
async function readText(response: Response, signal: AbortSignal, maxBytes: number): Promise<string | undefined> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of bodyChunks(response, signal)) {
    bytes += part.length;
    if (bytes > maxBytes) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

import { TrawlConnectionError, TrawlResponseError } from './errors.ts';
import { pause, type RetryOptions, untilAborted, waitMs } from './retry.ts';
import { Servers } from './servers.ts';
import type { Readiness } from './types.ts';

/** undici's codes for a time-out while the server is still working. Such a call is not repeated. */
const TIME_OUTS: readonly unknown[] = ['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'];

/**
 * Codes of a lost connection. They do not set the server aside, because it may only have closed an idle connection. Browsers give
 * no codes, so there every failure sets the server aside.
 */
const LOST: readonly unknown[] = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'];

interface Answer {
  readonly url: string;
  readonly path: string;
  readonly response: Response;
  readonly text: string;
}

type Outcome = Answer | TrawlConnectionError;

/** Sends requests to the servers, with the retries of `RetryOptions`. */
export class Requests {
  readonly servers: Servers;
  readonly #retry: RetryOptions;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: typeof fetch;

  constructor(
    urls: string | readonly string[],
    retry: RetryOptions,
    headers: Readonly<Record<string, string>>,
    send: typeof fetch,
  ) {
    this.servers = new Servers(urls, retry.cooldownMs);
    this.#retry = retry;
    this.#headers = headers;
    this.#fetch = send;
  }

  /** Sends a request and returns the JSON of the response, which has the type `Reply`. A request without a body is a GET. */
  async json<Reply>(path: string, body: object | undefined, signal: AbortSignal | undefined): Promise<Reply> {
    for (let round = 0; ; round++) {
      const outcomes = new Map<string, Outcome>();
      for (let url = this.servers.next(outcomes); url !== undefined; url = this.servers.next(outcomes)) {
        const outcome = await this.#send(url, path, body, signal);
        if (!isRepeatable(outcome)) {
          if (isAnswer(outcome)) return jsonObject(outcome) as Reply;
          throw outcome;
        }
        outcomes.set(url, outcome);
      }
      const answers = [...outcomes.values()].filter(isAnswer);
      if (round + 1 >= this.#retry.attempts) {
        if (answers[0] !== undefined) return jsonObject(answers[0]) as Reply;
        throw this.#noAnswer(outcomes);
      }
      const headers = answers.flatMap(({ response }) => response.headers.get('retry-after') ?? []);
      const waits = (headers.length > 0 ? headers : [null]).map((header) => waitMs(round, header, this.#retry));
      await pause(Math.min(...waits), signal);
    }
  }

  /** The readiness of the first server that is ready, else of the last one that answers. */
  async ready(signal: AbortSignal | undefined): Promise<Readiness> {
    const outcomes = new Map<string, Outcome>();
    let readiness: Readiness | undefined;
    for (const url of this.servers.inOrder()) {
      const outcome = await this.#send(url, '/readyz', undefined, signal);
      outcomes.set(url, outcome);
      if (!isAnswer(outcome)) continue;
      const facts = readyFacts(outcome);
      readiness = { ready: outcome.response.status === 200, status: String(facts.status), facts };
      if (readiness.ready) break;
    }
    if (readiness === undefined) throw this.#noAnswer(outcomes);
    return readiness;
  }

  /** Sends one request to one server, and sets it aside if it is unreachable or not ready. Rejects if `signal` aborts. */
  async #send(url: string, path: string, body: object | undefined, signal: AbortSignal | undefined): Promise<Outcome> {
    const init: RequestInit = { headers: this.#headers, signal };
    if (body !== undefined) {
      init.method = 'POST';
      init.headers = { ...this.#headers, 'content-type': 'application/json' };
      init.body = JSON.stringify(body, jsonValue);
    }
    try {
      const response = await untilAborted(this.#fetch(`${url}${path}`, init), signal);
      const answer = { url, path, response, text: await untilAborted(response.text(), signal) };
      const reason = notReady(answer);
      if (reason === undefined) this.servers.restore(url);
      else this.servers.setAside(url, reason);
      return answer;
    } catch (error) {
      if (signal?.aborted === true) {
        if ((signal.reason as Error | undefined)?.name === 'TimeoutError') this.servers.setAside(url, 'time-out');
        throw signal.reason;
      }
      const reason = reasonOf(error as Error);
      if (!LOST.includes(codeOf(error))) this.servers.setAside(url, reason);
      return new TrawlConnectionError(`No answer from ${url}: ${reason}`, url, { cause: error });
    }
  }

  #noAnswer(outcomes: ReadonlyMap<string, Outcome>): TrawlConnectionError {
    const errors = [...outcomes.values()].filter((outcome) => outcome instanceof TrawlConnectionError);
    const last = errors.at(-1)!;
    if (this.servers.urls.length === 1) return last;
    const reasons = this.servers.reasons();
    for (const [url, reason] of reasons) reasons.set(url, `${reason} (set aside)`);
    for (const { url, cause } of errors) reasons.set(url, reasonOf(cause as Error));
    const each = [...reasons].map(([url, reason]) => `${url}: ${reason}`).join('; ');
    return new TrawlConnectionError(`No answer from any server. ${each}`, last.url, { cause: last });
  }
}

/** Values that JSON.stringify would refuse, or write as something else without a word: NaN as null, a Float32Array as an object. */
function jsonValue(name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new TypeError(`${name} is ${value}; expected a finite number.`);
  }
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return Array.from(value as Float64Array);
  return value instanceof Set ? [...value] : value;
}

function isAnswer(outcome: Outcome): outcome is Answer {
  return !(outcome instanceof TrawlConnectionError);
}

function isRepeatable(outcome: Outcome): boolean {
  if (isAnswer(outcome)) return outcome.response.status === 503;
  return !TIME_OUTS.includes(codeOf(outcome.cause));
}

function codeOf(error: unknown): unknown {
  return ((error as Error | undefined)?.cause as { code?: unknown } | undefined)?.code;
}

/** The message with its cause's message, because the message of `fetch` is only "fetch failed". */
function reasonOf({ message, cause }: Error): string {
  if (!(cause instanceof Error)) return message;
  // The AggregateError of a host name with several addresses has a code but no message.
  return `${message}: ${cause.message || String((cause as { code?: unknown }).code)}`;
}

/** The body as a JSON object. @throws TrawlResponseError if the status is not 2xx, TypeError if the body is not a JSON object. */
function jsonObject(answer: Answer): Record<string, unknown> {
  const { url, path, response, text } = answer;
  const body = parsed(text);
  if (!response.ok) {
    const { code, message } = errorOf(body) ?? {
      code: 'UNKNOWN',
      message: response.statusText || 'The server refused the request.',
    };
    throw new TrawlResponseError(response.status, code, message, response.headers.get('x-request-id'), url);
  }
  if (body !== undefined) return body;
  throw new TypeError(`The response of ${url}${path} is not a JSON object. Check that it is a Trawl server.`);
}

/** The body of GET /readyz, which has status 503 while the server starts or stops. */
function readyFacts(answer: Answer): Record<string, unknown> {
  return (answer.response.status === 503 ? parsed(answer.text) : undefined) ?? jsonObject(answer);
}

/** Why the server is not ready: it is starting or stopping, or a proxy could not reach it. Undefined if it is ready. */
function notReady({ path, response, text }: Answer): string | undefined {
  if (response.status !== 503) return undefined;
  const body = parsed(text);
  if (path === '/readyz') return `503, ${String(body?.status)}`;
  const code = errorOf(body)?.code;
  if (code === undefined) return '503 without the error format of a Trawl server';
  return code === 'NOT_READY' ? `503, ${code}` : undefined;
}

function errorOf(body: Record<string, unknown> | undefined): { code: string; message: string } | undefined {
  const error = body?.error as { code?: unknown; message?: unknown } | null;
  return error?.code === undefined ? undefined : { code: String(error.code), message: String(error.message) };
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null && !Array.isArray(body)
      ? (body as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

import { TrawlError } from '../../base/errors.ts';
import { abortableFetch, bodyText, connectionFault } from '../../base/net/abortable-fetch.ts';
import { retryAfterMs, TransientFailure, withRetries } from '../../base/net/retries.ts';

export interface RepeatedRequestOptions {
  /** Sent as `Authorization: Bearer …`. */
  readonly apiKey?: string;
  /** Tries of a request that is refused for now (429, 503) or not answered, ≥ 1. Default: 10. */
  readonly attempts?: number;
  /** The first wait and the longest one, in milliseconds. Default: 250 and 30,000. */
  readonly firstWaitMs?: number;
  readonly maxWaitMs?: number;
  /** Time limit of one attempt, in milliseconds. Default: the limit of `fetch`. */
  readonly timeoutMs?: number;
  /** Called before each wait, with the reason and the milliseconds of the wait. */
  readonly onWait?: (reason: string, ms: number) => void;
  readonly signal?: AbortSignal;
}

export interface Reply {
  readonly status: number;
  readonly text: string;
  readonly state: string | null;
  /** Time of the last try, in milliseconds, without the waits between tries. */
  readonly ms: number;
  readonly tries: number;
}

/** The error for a request whose last try was not answered, or was refused with 429 or 503. The message is the reason. */
export class NoReply extends Error {
  readonly tries: number;

  constructor(reason: string, tries: number) {
    super(reason);
    this.tries = tries;
  }
}

/**
 * Sends JSON, or a GET request without a body, and waits while the server answers 429 or 503 or not at all. Any other answer is returned.
 *
 * @throws NoReply after the last try; TrawlError CONFIG_INVALID for a request that cannot be sent, CANCELLED.
 */
export function repeatedRequest(
  url: string,
  body: object | undefined,
  options: RepeatedRequestOptions = {},
): Promise<Reply> {
  const { apiKey, attempts = 10, firstWaitMs = 250, maxWaitMs = 30_000, timeoutMs, onWait, signal } = options;
  let tries = 0;
  const attempt = async (): Promise<Reply> => {
    tries++;
    const limit = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
    const ended = AbortSignal.any([signal, limit].filter((each) => each !== undefined));
    const started = performance.now();
    const response = await abortableFetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: ended,
    }).catch(failed);
    const text = await bodyText(response, ended).catch(failed);
    const { status, headers } = response;
    if (status === 429 || status === 503) {
      throw new TransientFailure(`it answered ${status}`, { retryAfterMs: retryAfterMs(headers) });
    }
    return { status, text, state: headers.get('x-trawl-state'), ms: performance.now() - started, tries };
  };
  const failed = (error: Error): never => {
    const { name, message, cause } = error;
    // `fetch` refuses the URL or a header. Trying again does not help, and its message would repeat the value, which may be a secret.
    if (error instanceof TypeError && cause === undefined) {
      throw new TrawlError('CONFIG_INVALID', 'The request cannot be sent: its URL or API key is not valid in HTTP.');
    }
    if (name === 'TimeoutError') throw new TransientFailure(`no answer within ${timeoutMs} ms`);
    throw new TransientFailure(cause instanceof Error ? `${message}: ${connectionFault(error)}` : message);
  };
  return withRetries(attempt, {
    policy: { attempts, firstWaitMs, maxWaitMs },
    signal,
    onWait,
    givenUp: (failure) => new NoReply(failure.message, tries),
  });
}

/** The server refused the request. `code` is stable (docs/errors.md); the message may change. */
export class TrawlResponseError extends Error {
  override readonly name = 'TrawlResponseError';
  readonly status: number;
  readonly code: string;
  /** The request's id in the server's log; null if the response had none. */
  readonly requestId: string | null;
  /** The base URL of the server that answered. */
  readonly url: string;

  constructor(status: number, code: string, message: string, requestId: string | null, url: string) {
    super(`${message} [${code}, status ${status}, ${url}]`);
    this.status = status;
    this.code = code;
    this.requestId = requestId;
    this.url = url;
  }
}

/** No server answered: unreachable, disconnected, or not ready in time. The message has the reason of each server. */
export class TrawlConnectionError extends Error {
  override readonly name = 'TrawlConnectionError';
  /** The base URL of the server that was tried last. */
  readonly url: string;

  constructor(message: string, url: string, options?: ErrorOptions) {
    super(message, options);
    this.url = url;
  }
}

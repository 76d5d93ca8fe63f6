/** The server refused. `code` is stable and may be matched on (docs/errors.md); the message may change. */
export class TrawlResponseError extends Error {
  override readonly name = 'TrawlResponseError';
  readonly status: number;
  readonly code: string;
  /** Under which the server's log has the request; null where it said none. */
  readonly requestId: string | null;

  constructor(status: number, code: string, message: string, requestId: string | null) {
    super(`${message} [${code}, status ${status}]`);
    this.status = status;
    this.code = code;
    this.requestId = requestId;
  }
}

/** No answer: the server cannot be reached, hung up, or is not ready in the time given. */
export class TrawlConnectionError extends Error {
  override readonly name = 'TrawlConnectionError';
}

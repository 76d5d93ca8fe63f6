import { ERROR_CODES, type ErrorCode, TrawlError } from '../../base/errors.ts';

/**
 * The statuses of the errors that clients get. Overload is 503 instead of 429, because clients of these protocols retry a 5xx and give up
 * on a 4xx.
 */
const STATUSES: Readonly<Partial<Record<ErrorCode, number>>> = {
  INVALID_JSON: 422,
  INVALID_REQUEST: 422,
  K_TOO_LARGE: 422,
  DIMENSION_MISMATCH: 422,
  NON_FINITE_QUERY: 422,
  SCORE_OVERFLOW: 422,
  ENCODING_FAILED: 422,
  RERANK_TOO_LARGE: 422,
  RERANK_REFUSED: 422,
  ENDPOINT_REFUSED: 422,
  HOST_MISSING: 400,
  EXPECTATION_FAILED: 417,
  EMPTY_QUERY: 400,
  // Clients do not retry a 501.
  NOT_SUPPORTED: 501,
  UNSUPPORTED_MEDIA_TYPE: 415,
  BODY_TOO_LARGE: 413,
  TOO_MANY_QUERIES: 413,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  QUERY_TOO_LONG: 413,
  NOT_FOUND: 404,
  NOT_RECORDED: 404,
  METHOD_NOT_ALLOWED: 405,
  RELOAD_FAILED: 409,
  // Milvus may answer again in a moment.
  STORE_FAILED: 503,
  // A restarted encoder thread answers the next attempt.
  ENCODER_FAILED: 503,
  ENDPOINT_FAILED: 503,
  RERANK_FAILED: 503,
  // The check of an endpoint found another model; it may be started again with the right one.
  MODEL_MISMATCH: 503,
  // A reload opens the index again, or says why it cannot.
  FILE_CHANGED: 503,
  INDEX_FILE_MISSING: 503,
  INDEX_FILE_TRUNCATED: 503,
  INDEX_FILE_FOREIGN: 503,
  NOT_READY: 503,
  OVERLOADED: 503,
  // Its purpose is to be retried.
  PERTURBED: 503,
  // Clients that set a deadline retry a 5xx.
  DEADLINE_EXCEEDED: 503,
  // Sent only if the server cancelled the request; a client that disconnected gets no response.
  CANCELLED: 503,
  // What a client copies was replaced; it lists the files again.
  SOURCE_CHANGED: 410,
};

/** The HTTP status of every error code: 500 for the codes of the command line and of builds, which only a bug can send to a client. */
export const ERROR_STATUS = Object.fromEntries(
  Object.keys(ERROR_CODES).map((code) => [code, STATUSES[code as ErrorCode] ?? 500]),
) as Readonly<Record<ErrorCode, number>>;

const DAMAGED =
  'A file of this index or of its model was changed or damaged while the server had it open, or cannot be read, so the index answers nothing until it is ' +
  "reloaded. The server's log names the file.";

/** Whether the operator has to act: a bug, a file of an index that changed, or a reranker that fails. */
export function isForOperator(code: ErrorCode): boolean {
  return ERROR_STATUS[code] === 500 || MESSAGES[code] === DAMAGED || code === 'RERANK_FAILED';
}

/** What clients get in place of messages for operators, which name internal addresses and options. The log has the messages. */
const MESSAGES: Readonly<Partial<Record<ErrorCode, string>>> = {
  FILE_CHANGED: DAMAGED,
  INDEX_FILE_MISSING: DAMAGED,
  INDEX_FILE_TRUNCATED: DAMAGED,
  INDEX_FILE_FOREIGN: DAMAGED,
  ENDPOINT_FAILED: "The server's encoder did not answer, or gave an unusable answer",
  RERANK_FAILED: "The server's reranker did not answer, or gave an unusable answer",
  ENDPOINT_REFUSED: "The server's encoder refuses a text, for its length for example. Shorten it.",
  RERANK_REFUSED:
    "The server's reranker refuses the query or its passages, for their length for example. Shorten them.",
  MODEL_MISMATCH: "The server's encoder is not the one of the index. Send the request again later.",
};

/** The error as clients get it: without addresses and advice for operators. */
export function clientError(error: TrawlError): TrawlError {
  const message = MESSAGES[error.code];
  if (message === undefined) return error;
  const { query, fault } = error.details;
  const position = typeof query === 'number' ? `Query ${query}: ` : '';
  const isFailure = error.code === 'ENDPOINT_FAILED' || error.code === 'RERANK_FAILED';
  const more = isFailure ? `${fault === undefined ? '' : `: ${fault}`}. Send the request again.` : '';
  return new TrawlError(error.code, position + message + more, { details: error.details, cause: error });
}

/** The message of an error that is part of a reply. The details of a 500 are only logged. */
export function clientMessage(error: TrawlError): string {
  return ERROR_STATUS[error.code] === 500 ? 'The server failed. Its log has the details.' : clientError(error).message;
}

import type { ErrorCode } from '../errors.ts';

/**
 * The one map from error codes to HTTP statuses. Overload is 503 and never 429: the clients of this protocol repeat a
 * 5xx and give up on a 4xx. Codes that belong to the command line or to building an index are 500 here, because a
 * request can only meet them through a defect.
 */
export const ERROR_STATUS: Readonly<Record<ErrorCode, number>> = {
  INVALID_JSON: 422,
  INVALID_REQUEST: 422,
  K_TOO_LARGE: 422,
  EMPTY_QUERY: 400,
  // Not among the statuses that clients try again.
  NOT_SUPPORTED: 501,
  UNSUPPORTED_MEDIA_TYPE: 415,
  BODY_TOO_LARGE: 413,
  TOO_MANY_QUERIES: 413,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  NOT_READY: 503,
  OVERLOADED: 503,
  // Seen by a client only where the server gave the call up; one that hung up sees nothing.
  CANCELLED: 503,
  USAGE: 500,
  CONFIG_INVALID: 500,
  CORPUS_NOT_FOUND: 500,
  CORPUS_FORMAT_UNKNOWN: 500,
  CORPUS_BAD_LINE: 500,
  CORPUS_DUPLICATE_ID: 500,
  CORPUS_EMPTY: 500,
  TEMPLATE_INVALID: 500,
  INDEX_NOT_FOUND: 500,
  INDEX_EXISTS: 500,
  INDEX_VERSION_UNSUPPORTED: 500,
  INDEX_MANIFEST_INVALID: 500,
  INDEX_FILE_MISSING: 500,
  INDEX_FILE_TRUNCATED: 500,
  INDEX_FILE_FOREIGN: 500,
  INDEX_CHECKSUM_MISMATCH: 500,
  MODEL_NOT_FOUND: 500,
  MODEL_INVALID: 500,
  MODEL_MISMATCH: 500,
  ENCODING_FAILED: 500,
  DIMENSION_MISMATCH: 500,
  NON_FINITE_VECTOR: 500,
  NON_FINITE_QUERY: 500,
  SCORE_OVERFLOW: 500,
  PORT_IN_USE: 500,
  OUTPUT_NOT_WRITABLE: 500,
  ENGINE_MISSING: 500,
  OUT_OF_MEMORY: 500,
  DISK_FULL: 500,
  INTERNAL: 500,
};

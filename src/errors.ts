/**
 * The one error family of the project. A `code` is stable and may be matched on; a message may change. A message names
 * what was found, what was expected and what to do. This file knows no HTTP and no library: who maps codes to status
 * codes or exit codes does so where the status is sent.
 */

/** Every code with the one-line meaning that the documentation prints. */
export const ERROR_CODES = {
  // What a person asked for
  USAGE: 'The command line is not understood: unknown command or option, missing or contradictory values.',
  CONFIG_INVALID: 'A configuration file or environment variable holds a value that is not allowed.',
  // Corpus
  CORPUS_NOT_FOUND: 'A corpus file or directory does not exist or cannot be read.',
  CORPUS_FORMAT_UNKNOWN: 'The kind of a corpus file cannot be told from its name and first line.',
  CORPUS_BAD_LINE: 'A line or row of a corpus cannot be used as a passage; the message has file:line and the reason.',
  CORPUS_DUPLICATE_ID: 'Two passages have the same id while unique ids were asked for.',
  CORPUS_EMPTY: 'The corpus holds no passage.',
  CORPUS_CHANGED: 'A corpus file was changed while it was read.',
  TEMPLATE_INVALID: 'A passage template cannot be parsed or names a column that a passage lacks.',
  // Index directory
  INDEX_NOT_FOUND: 'There is no index at the path: no manifest.json.',
  INDEX_EXISTS: 'The output path already holds an index or other files.',
  BUILD_LOCKED: 'Another process is building the index, or the shard, at this moment.',
  BUILD_DIFFERS:
    'A build was begun at the output path with another corpus, model or option; the message says what differs.',
  SHARDS_INCOMPLETE: 'Shards of an index are missing, unfinished, or more than one claims the same rows.',
  SHARDS_DIFFER: 'Shards that should form one index were made from another corpus, or with another model or option.',
  INDEX_VERSION_UNSUPPORTED: 'The index was written by a format version that this program does not read.',
  INDEX_MANIFEST_INVALID: 'A manifest of the index is not valid JSON or lacks required fields.',
  INDEX_FILE_MISSING: 'A file that the manifest names is not there.',
  INDEX_FILE_TRUNCATED: 'A file of the index has another size than the manifest or its own header says.',
  INDEX_FILE_FOREIGN: 'A file of the index is not of the kind the manifest says, or belongs to another index.',
  INDEX_CHECKSUM_MISMATCH: 'The content of a file of the index differs from the recorded checksum.',
  // Model
  MODEL_NOT_FOUND: 'No model folder with that name or path.',
  MODEL_INVALID: 'A model folder lacks files or its description is not usable.',
  MODEL_MISMATCH: 'The query encoder is not the one the index was made with.',
  MODEL_EXISTS: 'There is already a model, or another folder, where a model should be written.',
  DEVICE_UNAVAILABLE:
    'The device that was asked for (CUDA) cannot be used; the message has the command that installs what is missing.',
  ENCODING_FAILED: 'The encoder failed on a text.',
  // Vectors
  DIMENSION_MISMATCH: 'Vectors of another dimension than the index has.',
  NON_FINITE_VECTOR: 'A stored vector holds NaN or infinity; the message has row and column.',
  NON_FINITE_QUERY: 'A query vector holds NaN or infinity; the message has query and column.',
  SCORE_OVERFLOW: 'A returned score is beyond the range of float32.',
  // Vectors made elsewhere
  VECTORS_NOT_FOUND: 'A file of vectors that should be adopted does not exist or cannot be read.',
  VECTORS_INVALID: 'A file of vectors is damaged, or has another size than its header says.',
  VECTORS_UNSUPPORTED: 'A file of vectors is of a kind that is not read; the message says how to write one that is.',
  VECTORS_MISMATCH:
    'Vectors do not belong to the corpus or the model: another number of rows, dimension, metric or id.',
  VECTORS_OF_ANOTHER_MODEL:
    'Passages embedded again give other vectors than the files hold; the message has the similarities and what fits best.',
  PICKLE_UNSAFE: "A pickle names a function or class that numpy's plain arrays do not need. Nothing of it was run.",
  PICKLE_INVALID: 'A pickle is damaged, or holds something other than float32 or float16 arrays (and their ids).',
  // Requests
  INVALID_JSON: 'The body of the request is not valid JSON.',
  INVALID_REQUEST: 'The body of the request has a missing field or a value of the wrong type.',
  EMPTY_QUERY: 'A query is blank where clients are used to a refusal of blank queries.',
  NOT_SUPPORTED: 'The request is understood, but this server or this index has no such function (yet).',
  UNSUPPORTED_MEDIA_TYPE: 'The content type or content coding of the request is not supported.',
  BODY_TOO_LARGE: 'The body of the request is larger than the configured limit.',
  TOO_MANY_QUERIES: 'The request holds more queries than the configured limit.',
  QUERY_TOO_LONG: 'A text of the request is longer than the configured limit.',
  K_TOO_LARGE: 'More results per query were asked for than the configured limit.',
  NOT_FOUND: 'No such route.',
  METHOD_NOT_ALLOWED: 'The route exists, but not for this HTTP method.',
  NOT_READY: 'The server is starting or stopping.',
  OVERLOADED: 'The server has more work waiting than it is allowed to hold.',
  UNAUTHORIZED: 'The server wants a key, and the request has none or a wrong one.',
  FORBIDDEN: 'The key of the request, or its lack, does not allow this route.',
  RELOAD_FAILED: 'An index could not be opened anew; the one that was there goes on answering.',
  DEADLINE_EXCEEDED: 'The time that the client or the server gave the request is over.',
  CANCELLED: 'The caller went away or asked to stop.',
  // The Hugging Face hub
  HUB_NOT_FOUND: 'The hub has no such repository, revision or file, or shows it only to those who have access.',
  HUB_ACCESS_DENIED: 'The hub wants a token, does not accept the given one, or its terms were not accepted (gated).',
  HUB_OFFLINE: 'Something has to be fetched from the hub while HF_HUB_OFFLINE forbids it.',
  HUB_UNREACHABLE: 'The hub does not answer, breaks off, or is overloaded, after several attempts.',
  HUB_REPLY_INVALID: 'The server at HF_ENDPOINT answers otherwise than the hub does, or names an unsafe path.',
  DOWNLOAD_CORRUPT: 'A downloaded file has another length or checksum than the hub says.',
  DOWNLOAD_LOCKED: 'Another process is downloading into the same folder.',
  // The machine
  PORT_IN_USE: 'The address the server should listen on is taken.',
  OUTPUT_EXISTS: 'The output file already exists, or another run is writing it.',
  OUTPUT_NOT_WRITABLE: 'A file or folder cannot be written: its parent is missing, permissions, a read-only disk.',
  ENGINE_MISSING: 'The native engine is needed for this and could not be loaded.',
  OUT_OF_MEMORY: 'The machine does not have the memory that was asked for.',
  DISK_FULL: 'There is no space left for what is being written.',
  INTERNAL: 'A defect of this program. The log has the details.',
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface TrawlErrorOptions {
  /** Machine-readable facts (numbers, names), never passage or query text. */
  details?: Readonly<Record<string, unknown>>;
  cause?: unknown;
}

export class TrawlError extends Error {
  override readonly name = 'TrawlError';
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: TrawlErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? {};
  }
}

/** An invariant did not hold: never the user's fault. */
export function bug(message: string, cause?: unknown): TrawlError {
  return new TrawlError('INTERNAL', `${message}. This is a bug.`, { cause });
}

/** The error as a `TrawlError`; what is not one becomes INTERNAL with the original as cause. */
export function asTrawlError(error: unknown): TrawlError {
  if (error instanceof TrawlError) return error;
  if (isNodeError(error) && error.code === 'ENOSPC') {
    return new TrawlError(
      'DISK_FULL',
      `No space left on the device (${error.path ?? 'unknown file'}). Free space and run it again.`,
      {
        cause: error,
      },
    );
  }
  if (error instanceof Error && error.name === 'AbortError') {
    return new TrawlError('CANCELLED', 'The operation was cancelled.', { cause: error });
  }
  return new TrawlError('INTERNAL', error instanceof Error ? error.message : String(error), { cause: error });
}

export function isNodeError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).code === 'string';
}

/** What crosses a thread boundary in place of an Error object. */
export interface SerializedError {
  code: ErrorCode;
  message: string;
  details: Readonly<Record<string, unknown>>;
}

export function serializeError(error: unknown): SerializedError {
  const { code, message, details } = asTrawlError(error);
  return { code, message, details };
}

export function deserializeError(error: SerializedError): TrawlError {
  return new TrawlError(error.code, error.message, { details: error.details });
}

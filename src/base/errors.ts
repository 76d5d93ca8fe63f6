/**
 * The project's error class. A `code` is stable, and clients may match on it; a message may change. A message says what was
 * found, what was expected and what to do. HTTP status codes are assigned in src/server, exit codes in cli/.
 */

/** Every code with its meaning, as docs/errors.md lists it. */
export const ERROR_CODES = {
  // Command line and configuration
  USAGE: 'The command line is wrong: an unknown command or option, or missing or contradictory values.',
  CONFIG_INVALID: 'A configuration file, an environment variable or an option has a value that is not allowed.',
  // Corpus
  CORPUS_NOT_FOUND: 'A corpus file or directory does not exist or cannot be read.',
  CORPUS_FORMAT_UNKNOWN: 'The format of a corpus file cannot be recognised from its name and first line.',
  CORPUS_BAD_LINE: 'A line or row of the corpus cannot be used as a passage; the message has file:line and the reason.',
  CORPUS_DUPLICATE_ID: 'Two passages have the same id, but unique ids are required.',
  CORPUS_EMPTY: 'The corpus has no passages, or a file of queries has no queries.',
  CORPUS_CHANGED: 'A corpus file changed while it was read.',
  TEMPLATE_INVALID: 'A passage template cannot be parsed, or names a column that a passage lacks.',
  // Index directory
  INDEX_NOT_FOUND: 'The directory is not an index: it has no manifest.json.',
  INDEX_EXISTS: 'The output path already has an index or other files.',
  BUILD_LOCKED: 'Another process is building this index or shard.',
  BUILD_DIFFERS:
    'The output path has an unfinished build with another corpus, model or option; the message says what differs.',
  SHARDS_INCOMPLETE: 'Shards of an index are missing or unfinished, or several cover the same rows.',
  SHARDS_DIFFER: 'The shards of one index were built from different corpora, or with different models or options.',
  INDEX_VERSION_UNSUPPORTED: 'The index has a format version that this program does not read.',
  INDEX_MANIFEST_INVALID: 'A manifest of the index is not valid JSON or lacks required fields.',
  INDEX_FILE_MISSING: 'A file that the manifest names does not exist.',
  INDEX_FILE_TRUNCATED: 'The size of an index file differs from its manifest or its own header.',
  INDEX_FILE_FOREIGN: 'The format of an index file differs from its manifest, or the file belongs to another index.',
  FILE_CHANGED:
    'A file of an open index or model was changed, truncated or removed, or cannot be read any more. Its index answers nothing until it is reloaded.',
  INDEX_CHECKSUM_MISMATCH: 'The content of an index file differs from its recorded checksum.',
  // Model
  MODEL_NOT_FOUND: 'No model folder has that name or path.',
  MODEL_INVALID: 'A model folder lacks files, or its description is unusable.',
  MODEL_MISMATCH: 'The encoder differs from the one that the index was built with.',
  MODEL_EXISTS: 'The output folder of the model already has a model or other files.',
  MODEL_LOCKED: 'Another process is adding the same model, or is reading the same download.',
  DEVICE_UNAVAILABLE: 'The requested device (CUDA) cannot be used; the message says what is missing and what to do.',
  ENCODER_MISSING:
    'The encoder or reranker cannot run, because onnxruntime has no binary for this system; the message says what works without it.',
  ENCODING_FAILED:
    'The text has no vector or score: the model returns NaN or infinity for it, or the query leaves no room for a passage.',
  ENCODER_FAILED:
    'The encoder failed for a reason outside of the text: a thread ended, or the model could not run. The text can be sent again.',
  ENDPOINT_FAILED:
    'An encoder behind HTTP cannot be used, did not answer or gave an unusable answer. The text can be sent again.',
  ENDPOINT_REFUSED: 'An encoder behind HTTP refuses the text, and would refuse it again.',
  // Reranker
  RERANK_FAILED:
    'The server of the reranker did not answer, failed, or gave an unusable answer. The query can be sent again.',
  RERANK_REFUSED: 'The server of the reranker refuses the query or its passages, and would refuse them again.',
  // Vector stores
  STORE_FAILED: 'The vector store did not answer, failed, or gave an incomplete answer. The request can be sent again.',
  STORE_REFUSED: 'The vector store rejects user or password, or the user may not do that.',
  STORE_DIFFERS: 'What the vector store holds differs from the index that was published into it.',
  // Vectors
  DIMENSION_MISMATCH: 'A vector and the index have different dimensions.',
  NON_FINITE_VECTOR: 'A stored vector has NaN or infinity; the message has row and column.',
  NON_FINITE_QUERY: 'A query vector has NaN or infinity; the message has query and column.',
  SCORE_OVERFLOW: 'A score is beyond the range of float32.',
  // Vector files
  VECTORS_NOT_FOUND: 'A vector file does not exist or cannot be read.',
  VECTORS_INVALID: 'A vector file is damaged, or its size differs from its header.',
  VECTORS_UNSUPPORTED: 'The format of a vector file is not supported; the message says how to write a supported one.',
  VECTORS_MISMATCH: 'Vectors do not match the corpus or the model: number, dimension, metric or ids differ.',
  VECTORS_OF_ANOTHER_MODEL:
    'The model embeds sampled passages differently from the vector files; the message has the similarities and the best match.',
  PICKLE_UNSAFE:
    'A pickle names a function or class that plain numpy arrays do not need. None of its code was executed.',
  PICKLE_INVALID: 'A pickle is damaged, or holds data other than float32 or float16 arrays (and their ids).',
  // Requests
  INVALID_JSON: 'The request body is not valid JSON.',
  INVALID_REQUEST: 'A field, parameter or header of the request is missing or has a wrong value.',
  EMPTY_QUERY: 'The query is blank, which this route refuses.',
  NOT_SUPPORTED: 'The request is valid, but this server or this index cannot answer it.',
  UNSUPPORTED_MEDIA_TYPE: 'The content type or content encoding of the request is not supported.',
  BODY_TOO_LARGE: 'The request body is larger than the limit.',
  TOO_MANY_QUERIES: 'The request has more queries than the limit.',
  QUERY_TOO_LONG: 'A text of the request is longer than the limit.',
  RERANK_TOO_LARGE:
    'The pairs of query and passage that the request makes the reranker read have more tokens than the limit.',
  K_TOO_LARGE: 'The request asks for more passages per query, or in one response, than the limit.',
  HOST_MISSING: 'An HTTP/1.1 request has no Host header.',
  EXPECTATION_FAILED: 'The request has an Expect header other than 100-continue.',
  NOT_FOUND: 'The route, index, passage or model does not exist.',
  NOT_RECORDED:
    'A replayed index has no recorded answer for the query and its settings, or none with as many passages.',
  METHOD_NOT_ALLOWED: 'The route exists, but not for this HTTP method.',
  NOT_READY: 'The server is starting or stopping.',
  OVERLOADED:
    'A limit is reached (waiting requests, bytes of request bodies or of responses), or the wait would be too long.',
  PERTURBED: 'The server failed the request on purpose (--perturb fail), to test its client.',
  UNAUTHORIZED: 'The server requires an API key, and the request has none or a wrong one.',
  FORBIDDEN: 'The API key does not allow this route, or the route requires one.',
  INDEX_CHANGED:
    'The index of a server was replaced by another generation during a run, so its answers would be of two indexes.',
  RELOAD_FAILED: 'The new index could not be opened; the old one still answers.',
  DEADLINE_EXCEEDED: 'The request was not answered within its time limit.',
  CANCELLED: 'The client disconnected, or the operation was cancelled.',
  // Hugging Face hub
  HUB_NOT_FOUND: 'The repository, revision or file does not exist on the hub, or is private.',
  HUB_ACCESS_DENIED:
    'The hub requires a token, rejects the given token, or its terms were not accepted (gated repository).',
  HUB_OFFLINE: 'A file must be downloaded from the hub, but HF_HUB_OFFLINE forbids it.',
  HUB_UNREACHABLE: 'The hub did not answer, disconnected or was overloaded, after several attempts.',
  HUB_REPLY_INVALID: "The response of HF_ENDPOINT is not in the hub's format, or names an unsafe path.",
  DOWNLOAD_CORRUPT: "The length or checksum of a downloaded file differs from the hub's record.",
  DOWNLOAD_LOCKED: 'Another process is downloading into the same folder.',
  // Copies of indexes
  SOURCE_UNREACHABLE:
    'The source of a copy (a server or an object storage) did not answer, disconnected or was overloaded, after several attempts.',
  SOURCE_REFUSED: 'The source of a copy refuses the key, or is of a version that does not list the files of an index.',
  SOURCE_CHANGED: 'The source of a copy has another index than when the copy began, or one of its files is gone.',
  PACKAGE_MISSING:
    'A package that only this option needs is not installed; the message has the command that installs it.',
  ROLLOUT_FAILED: 'A server does not pass a check of a rollout, so the other servers keep their index.',
  // Machine
  PORT_IN_USE: 'The address to listen on is in use.',
  OUTPUT_EXISTS: 'The output file already exists, or another run is writing it.',
  OUTPUT_DIFFERS:
    'The output file has an unfinished run with another input, index or option, or one that was damaged; the message says what differs.',
  OUTPUT_NOT_WRITABLE: 'A file or folder cannot be written: missing parent, permissions or a read-only disk.',
  ENGINE_MISSING: 'The native engine is required and could not be loaded.',
  OUT_OF_MEMORY: 'The machine does not have the requested memory.',
  DISK_FULL: 'No space is left on the disk.',
  FILE_LIMIT: 'The process or the machine may open no more files.',
  INTERNAL: 'A bug in this program. The log has the details.',
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

/** What helps against each error, as docs/errors.md lists it. @internal */
export const ERROR_FIXES: Readonly<Record<ErrorCode, string>> = {
  USAGE: 'Correct the command line; `trawl COMMAND --help` lists the options.',
  CONFIG_INVALID: 'Give the named setting one of the values that the message names.',
  CORPUS_NOT_FOUND: 'Correct the path, or give the process the right to read it.',
  CORPUS_FORMAT_UNKNOWN: 'Name the format with `--format`, or give the file one of the known suffixes.',
  CORPUS_BAD_LINE: 'Correct the line that the message names.',
  CORPUS_DUPLICATE_ID: 'Give the passages different ids, or build without `--unique-ids`.',
  CORPUS_EMPTY: 'Name a file that has rows.',
  CORPUS_CHANGED: 'Run the command again once nothing writes the file.',
  TEMPLATE_INVALID: 'Name columns that every passage has, in braces.',
  INDEX_NOT_FOUND: 'Correct the path; an unfinished build is in `OUT.partial`.',
  INDEX_EXISTS: 'Choose another `--out`, update the index with `--update`, or remove it.',
  BUILD_LOCKED: 'Wait for the other process, or stop it.',
  BUILD_DIFFERS: 'Repeat the first command to resume it, or remove the unfinished folder.',
  SHARDS_INCOMPLETE: 'Build the shards that the message names.',
  SHARDS_DIFFER: 'Build the shards that the message names with the same corpus, model and options as the others.',
  INDEX_VERSION_UNSUPPORTED: 'Use the version of Trawl that made the index or a newer one, or build the index again.',
  INDEX_MANIFEST_INVALID: 'Copy the index again from a good copy, or build it again.',
  INDEX_FILE_MISSING: 'Copy the file from a good copy of the index, or build the index again.',
  INDEX_FILE_TRUNCATED: 'Copy the file again from a good copy of the index, or build the index again.',
  INDEX_FILE_FOREIGN: 'Copy the file again from a good copy of the index, or build the index again.',
  INDEX_CHECKSUM_MISMATCH: 'Copy the file again from a good copy of the index, or build the index again.',
  FILE_CHANGED: 'Restore the file that the message names, and reload the index.',
  MODEL_NOT_FOUND: '`trawl model list` has the names; `trawl model add` adds a model.',
  MODEL_INVALID: 'Download the model again, or follow what the message says about the file.',
  MODEL_MISMATCH: 'Use the encoder that the message names, or build the index again with this one.',
  MODEL_EXISTS: 'Choose another `--out`, or remove the folder.',
  MODEL_LOCKED: 'Wait for the other process, or stop it.',
  DEVICE_UNAVAILABLE: 'Install what is missing, or use `--device cpu`.',
  ENCODER_MISSING: 'Search with `bm25`, use an encoder behind HTTP, or use a system that onnxruntime has a binary for.',
  ENCODING_FAILED: 'Leave out or shorten the text that the message names.',
  ENCODER_FAILED: 'Repeat it. If it fails again, read the log, and lower the batch size if memory is short.',
  ENDPOINT_FAILED: "Check that the encoder's server runs, its address and its key; then repeat it.",
  ENDPOINT_REFUSED: "Shorten the text, or raise the limit of the encoder's server.",
  RERANK_FAILED: "Check that the reranker's server runs, its address and its key; then repeat it.",
  RERANK_REFUSED: "Shorten the query or ask for fewer hits, or raise the limit of the reranker's server.",
  STORE_FAILED: 'Check that the vector store runs and its address; then repeat it.',
  STORE_REFUSED: 'Correct user and password, or give the user the right that the message names.',
  STORE_DIFFERS: 'Publish the index again; `trawl verify ADDRESS` shows what differs.',
  DIMENSION_MISMATCH: "Embed with the index's encoder.",
  NON_FINITE_VECTOR: 'Make the vector that the message names again.',
  NON_FINITE_QUERY: 'Send finite numbers.',
  SCORE_OVERFLOW: 'Send a shorter vector, for example one of length 1.',
  VECTORS_NOT_FOUND: 'Correct the path, or give the process the right to read it.',
  VECTORS_INVALID: 'Write or copy the file again.',
  VECTORS_UNSUPPORTED: 'Write the vectors as the message says.',
  VECTORS_MISMATCH: 'Give the vectors of this corpus and model, in the order of its rows.',
  VECTORS_OF_ANOTHER_MODEL: 'Name the model, prefix and pooling that made the vectors.',
  PICKLE_UNSAFE: 'Save the array with `numpy.save`, and give the .npy file.',
  PICKLE_INVALID: 'Save the array with `numpy.save`, and give the .npy file.',
  INVALID_JSON: 'Send valid JSON in UTF-8; it has no NaN and no Infinity.',
  INVALID_REQUEST: 'Correct the field that the message names.',
  EMPTY_QUERY: 'Send a text.',
  NOT_SUPPORTED: 'Use a mode, field or route that this index has; the message names it.',
  UNSUPPORTED_MEDIA_TYPE:
    'Send `content-type: application/json`, and no other `content-encoding` than the message names.',
  BODY_TOO_LARGE: 'Send fewer queries per request, or raise `--max-body-mib`.',
  TOO_MANY_QUERIES: 'Send fewer queries per request, or raise `--max-queries`.',
  QUERY_TOO_LONG: 'Shorten the text, or raise `--max-query-chars`.',
  RERANK_TOO_LARGE: 'Send fewer queries or a lower depth, or raise `--rerank-max-tokens`.',
  K_TOO_LARGE: 'Ask for fewer passages or send fewer queries, or raise `--max-k`.',
  HOST_MISSING: 'Send the Host header, as every HTTP library does.',
  EXPECTATION_FAILED: 'Leave the Expect header out.',
  NOT_FOUND: 'Correct the name; the message lists those that exist where it can.',
  NOT_RECORDED: 'Record the query, or serve the index itself.',
  METHOD_NOT_ALLOWED: 'Use a method of the header `allow`.',
  NOT_READY: 'Repeat it when `/readyz` is 200.',
  OVERLOADED: 'Repeat it later; add a replica, or raise the limit that the message names.',
  PERTURBED: 'Repeat it: that is what the server tests.',
  UNAUTHORIZED: 'Send `authorization: Bearer KEY` with a key of `--keys-file`.',
  FORBIDDEN: 'Use a key whose scope allows the route.',
  INDEX_CHANGED: 'Start the run again, or keep the server from reloading meanwhile.',
  RELOAD_FAILED: 'Mend the new index as its message in the log says, and reload again.',
  DEADLINE_EXCEEDED: 'Repeat it, send fewer queries per request, or allow more time.',
  CANCELLED: 'Run the command again; it resumes where the message says so.',
  HUB_NOT_FOUND: 'Correct name and revision; for a private repository set `HF_TOKEN`.',
  HUB_ACCESS_DENIED: "Accept the terms on the hub's page of the repository, and set `HF_TOKEN`.",
  HUB_OFFLINE: 'Unset `HF_HUB_OFFLINE`, or copy the download from another machine.',
  HUB_UNREACHABLE: 'Check the network, the proxy and `HF_ENDPOINT`; the same command resumes.',
  HUB_REPLY_INVALID: 'Correct `HF_ENDPOINT`, or unset it.',
  DOWNLOAD_CORRUPT: 'Run the command again; it downloads the file anew.',
  DOWNLOAD_LOCKED: 'Wait for the other process, or stop it.',
  SOURCE_UNREACHABLE: 'Check address and network; the same command resumes.',
  SOURCE_REFUSED: 'Give a key that may list the index, or update the server.',
  SOURCE_CHANGED: 'Run the command again; it copies the new index.',
  PACKAGE_MISSING: 'Run the command of the message.',
  ROLLOUT_FAILED: 'Mend the server that the message names, and run the rollout again.',
  PORT_IN_USE: 'Choose another `--port`, or stop the program that uses it.',
  OUTPUT_EXISTS: 'Choose another `--out`, or remove the file.',
  OUTPUT_DIFFERS: 'Repeat the first command to resume it, or remove the output.',
  OUTPUT_NOT_WRITABLE: 'Make the parent folder, or choose another `--out`.',
  ENGINE_MISSING: 'Run `npm run build` or install Trawl again.',
  OUT_OF_MEMORY: 'Choose smaller values, or a machine with more memory.',
  DISK_FULL: 'Free space, and run the same command again.',
  FILE_LIMIT: 'Raise the limit (`ulimit -n`), or build the index with fewer shards.',
  INTERNAL: 'Report it with the log.',
};

/** Numbers and names for programs; never the text of passages or queries. The named fields decide what callers do. */
interface ErrorDetails {
  readonly [name: string]: unknown;
  /** The file that is at fault. A NON_FINITE_VECTOR without it comes from the encoder. */
  readonly path?: string;
  /** CANCELLED: the same command goes on where this one stopped. */
  readonly resumable?: boolean;
  /** ENCODER_FAILED: a smaller batch may succeed. */
  readonly outOfMemory?: boolean;
  /** NOT_SUPPORTED of Pyserini's order: the most tied passages that a query may have. */
  readonly maxTied?: number;
  /** The request's field that is wrong. */
  readonly param?: string;
  /** The HTTP status that a server of models answered. */
  readonly status?: number | undefined;
  /** What was wrong with the answer of a server of models, without addresses and texts: clients get it, too. */
  readonly fault?: string;
  /** Seconds after which a client may ask again. */
  readonly retryAfterS?: number;
}

interface TrawlErrorOptions {
  details?: ErrorDetails;
  cause?: unknown;
}

export class TrawlError extends Error {
  override readonly name = 'TrawlError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, options: TrawlErrorOptions = {}) {
    const limit = code === 'FILE_LIMIT' ? undefined : fileLimit(options.cause);
    super(limit ?? message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = limit === undefined ? code : 'FILE_LIMIT';
    this.details = options.details ?? {};
  }
}

/** On Linux and on macOS: of the machine and of the process. */
const [ENFILE, EMFILE] = [23, 24];

/** The message for an error from a limit of open files. Whatever could not be read or written then, the file is not at fault. */
function fileLimit(cause: unknown): string | undefined {
  if (cause instanceof TrawlError) return cause.code === 'FILE_LIMIT' ? cause.message : undefined;
  // Node.js has negative numbers.
  const errno = Math.abs((cause as NodeJS.ErrnoException | undefined)?.errno ?? 0);
  if (errno !== ENFILE && errno !== EMFILE) return undefined;
  return (
    `This process may open no more files (${(cause as Error).message}). Raise its limit (ulimit -n; for a service of systemd LimitNOFILE), or ` +
    'build the index with fewer shards (--shard-rows).'
  );
}

/** A USAGE error: a mistake on the command line. */
export function usageError(message: string, options?: TrawlErrorOptions): TrawlError {
  return new TrawlError('USAGE', message, options);
}

/** Turns CONFIG_INVALID into USAGE, for work whose settings come from the command line. */
export async function asUsage<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof TrawlError && error.code === 'CONFIG_INVALID') {
      throw usageError(error.message, { details: error.details, cause: error });
    }
    throw error;
  }
}

/** An INTERNAL error for a violated invariant. */
export function bug(message: string, cause?: unknown): TrawlError {
  return new TrawlError('INTERNAL', `${message}. This is a bug.`, { cause });
}

/** Converts any thrown value. An unknown error becomes the cause of an INTERNAL error. */
export function asTrawlError(error: unknown): TrawlError {
  if (error instanceof TrawlError) return error;
  // One that a thread threw has lost its class.
  if (isNodeError(error) && error.name === 'TrawlError') return deserializeError(error as Error & SerializedError);
  if (isNodeError(error) && (error.code === 'ENOSPC' || error.code === 'EDQUOT')) {
    const full = error.code === 'ENOSPC' ? 'No space left on the device' : 'The disk quota is used up';
    const file = error.path ?? 'unknown file';
    return new TrawlError('DISK_FULL', `${full} (${file}). Free space and run the command again.`, { cause: error });
  }
  if (error instanceof Error && error.name === 'AbortError') {
    return new TrawlError('CANCELLED', 'The operation was cancelled.', { cause: error });
  }
  return new TrawlError('INTERNAL', error instanceof Error ? error.message : String(error), { cause: error });
}

export function isNodeError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).code === 'string';
}

/** A `TrawlError` in a message between threads. */
export interface SerializedError {
  code: ErrorCode;
  message: string;
  details: ErrorDetails;
}

export function serializeError(error: unknown): SerializedError {
  const { code, message, details } = asTrawlError(error);
  return { code, message, details };
}

export function deserializeError(error: SerializedError): TrawlError {
  return new TrawlError(error.code, error.message, { details: error.details });
}

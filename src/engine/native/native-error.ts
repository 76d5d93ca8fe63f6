import { constants } from 'node:os';
import { type ErrorCode, TrawlError } from '../../base/errors.ts';
import { writeFailure } from '../../base/system/write-failure.ts';

/** An error of the addon (native/addon/errors.hpp). */
interface NativeError extends Error {
  readonly code: string;
  /** Row or query, and coordinate; −1 where none. */
  readonly item: number;
  readonly column: number;
  /** Where the operating system refused a call: the number above 0, and the file. */
  readonly errno?: number;
  readonly path?: string;
}

/** Codes of the engine without a refusal of the operating system; any other is a bug of the caller. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  BAD_FILE: 'INDEX_FILE_FOREIGN',
  NOT_FINITE: 'NON_FINITE_VECTOR',
  ISA_UNAVAILABLE: 'CONFIG_INVALID',
  NO_THREADS: 'OUT_OF_MEMORY',
  CANCELLED: 'CANCELLED',
  DEVICE_UNAVAILABLE: 'DEVICE_UNAVAILABLE',
  OUT_OF_MEMORY: 'OUT_OF_MEMORY',
};

const ERRNO_NAMES = new Map(Object.entries(constants.errno).map(([name, errno]) => [errno, name]));

/** The addon's error as a `TrawlError`; an error of another origin, or a bug of the caller, as it is. */
export function fromNative(error: unknown): unknown {
  if (!isNativeError(error)) return error;
  const { code, message, item, column } = error;
  if (code === 'WRITE_FAILED' || code === 'READ_FAILED') return fromSystem(error);
  const known = CODES[code];
  if (known === undefined) return error;
  const details = { ...(item === -1 ? {} : { item }), ...(column === -1 ? {} : { column }) };
  return new TrawlError(known, message, { details, cause: error });
}

function isNativeError(error: unknown): error is NativeError {
  return error instanceof Error && typeof (error as NativeError).code === 'string';
}

function fromSystem(error: NativeError): TrawlError {
  const { code, message, errno = 0, path = '' } = error;
  const reason = ERRNO_NAMES.get(errno) ?? `errno ${errno}`;
  const details = { path, reason };
  if (reason === 'ENOMEM') {
    return new TrawlError('OUT_OF_MEMORY', `${message}. Free memory or raise its limit, then try again.`, {
      details,
      cause: error,
    });
  }
  if (code === 'READ_FAILED') {
    return new TrawlError('INDEX_FILE_MISSING', `${message}. Restore the file or build the index again.`, {
      details,
      cause: error,
    });
  }
  const failure = writeFailure(
    Object.assign(new Error(message, { cause: error }), { code: reason, errno, path }),
    path,
  );
  if (failure instanceof TrawlError) return failure;
  return new TrawlError('OUTPUT_NOT_WRITABLE', `${message}. Check the disk and its mount, or choose another path.`, {
    details,
    cause: error,
  });
}

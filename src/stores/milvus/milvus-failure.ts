import { TrawlError } from '../../base/errors.ts';
import type { SdkReply, SdkStatus } from './milvus-sdk.ts';

/** What the client reports: Milvus's own codes or gRPC's codes. */
interface MilvusStatus {
  readonly errorCode: string;
  readonly code: number;
  readonly reason: string;
  readonly retriable: boolean;
}

/** gRPC: PERMISSION_DENIED and UNAUTHENTICATED. */
const REFUSED_BY_GRPC: readonly number[] = [7, 16];
/** gRPC: UNAVAILABLE. */
const UNAVAILABLE = 14;
/** gRPC: DEADLINE_EXCEEDED. */
const LATE = 4;
const MILVUS_COLLECTION_NOT_FOUND = 100;
const MILVUS_DATABASE_NOT_FOUND = 800;
/** Milvus: authentication failed, and privilege missing. */
const REFUSED_BY_MILVUS: readonly number[] = [1400, 1401, 1402, 1403];

/** A failed call, as the retries see it. */
export class MilvusFailure extends Error {
  /** The collection or the database is. */
  readonly isMissing: boolean;
  readonly isDatabaseMissing: boolean;
  readonly isRefused: boolean;
  readonly isLate: boolean;
  /** Whether another attempt may succeed at once. Not after a time-out, which would only double the wait. */
  readonly isWorthRetrying: boolean;

  private constructor(reason: string, flags: { code: unknown; refused?: boolean; late?: boolean; retry?: boolean }) {
    super(reason);
    this.isDatabaseMissing = flags.code === MILVUS_DATABASE_NOT_FOUND || MISSING_DATABASE.test(reason);
    this.isMissing =
      this.isDatabaseMissing || flags.code === MILVUS_COLLECTION_NOT_FOUND || MISSING_COLLECTION.test(reason);
    this.isRefused = flags.refused === true;
    this.isLate = flags.late === true;
    this.isWorthRetrying = flags.retry === true;
  }

  static ofStatus({ errorCode, code, reason, retriable }: MilvusStatus): MilvusFailure {
    return new MilvusFailure(reason === '' ? errorCode : reason, {
      code,
      refused: REFUSED_BY_MILVUS.includes(code),
      retry: retriable || code === 0 || RETRIABLE.includes(code),
    });
  }

  static ofThrown(thrown: unknown): MilvusFailure {
    if (thrown instanceof MilvusFailure) return thrown;
    // Some calls of the client throw the reply of Milvus itself.
    const { error_code, reason: said, code, details, message } = thrown as Record<string, unknown>;
    if (typeof error_code === 'string' && typeof said === 'string') {
      return MilvusFailure.ofStatus({ errorCode: error_code, code: Number(code ?? 0), reason: said, retriable: false });
    }
    const reason = typeof details === 'string' && details !== '' ? details : String(message ?? thrown);
    return new MilvusFailure(reason, {
      // Of gRPC, not of Milvus.
      code: undefined,
      refused: typeof code === 'number' && REFUSED_BY_GRPC.includes(code),
      late: code === LATE,
      retry: code === UNAVAILABLE,
    });
  }
}

/** Milvus: service not ready, unavailable, rate limited, collection not loaded, node or channel lost. */
const RETRIABLE: readonly number[] = [1, 2, 4, 8, 12, 101, 103, 106, 501, 502, 503, 901];

const MISSING_COLLECTION = /can't find collection|collection not found|collection not exist/i;
const MISSING_DATABASE = /database not found|database:\w+ not exist/i;

/**
 * @param readsRows whether the call reads rows. The package returns an empty reply if the server does not have a call. As rows, that would
 *   be an empty answer, so a reply without a status is a failure.
 * @throws MilvusFailure.
 */
export function checkStatus(reply: SdkReply, readsRows: boolean): void {
  if (readsRows && reply?.status === undefined) throw MilvusFailure.ofThrown(new Error('its reply has no status'));
  // Some replies are the status, others have one.
  const status: SdkStatus = reply?.status ?? reply ?? {};
  const { error_code: errorCode = 'Success', code = 0, reason = '', retriable = false } = status;
  if ((errorCode === 'Success' || errorCode === '0') && code === 0) return;
  throw MilvusFailure.ofStatus({ errorCode, code, reason, retriable });
}

/** Seconds after which a request that Milvus did not answer may be sent again. */
const RETRY_AFTER_S = 5;

/** The server of a call, for messages; never with a password. */
export interface AskedServer {
  readonly server: string;
  /** What to check after a refusal, with a space before it. */
  readonly advice: string;
}

export function storeError({ server, advice }: AskedServer, doing: string, failure: MilvusFailure): TrawlError {
  const reason = failure.message.replaceAll(/\s+/g, ' ').slice(0, 300);
  if (failure.isRefused) {
    return new TrawlError('STORE_REFUSED', `Milvus at ${server} refuses ${doing}: ${reason}.${advice}`);
  }
  const late = failure.isLate ? 'it did not answer in time' : reason;
  return new TrawlError(
    'STORE_FAILED',
    `Milvus at ${server} could not ${doing}: ${late}. Check that it runs and is reachable; the request can be sent again.`,
    { details: { retryAfterS: RETRY_AFTER_S } },
  );
}

/** The error for a call whose collection or database does not exist. */
export function missing(server: string, failure: MilvusFailure): TrawlError {
  const { message, isDatabaseMissing } = failure;
  const what = isDatabaseMissing
    ? `no such database (${message}). Create it in Milvus, or correct the address; without a database in the address, it is \`default\`.`
    : `no such collection (${message}). Publish an index with \`trawl publish\`, or correct the address.`;
  return new TrawlError('INDEX_NOT_FOUND', `Milvus at ${server} has ${what}`, { cause: failure });
}

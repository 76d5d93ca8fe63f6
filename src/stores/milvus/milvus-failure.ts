import { StoreFailure } from '../published/store-calls.ts';
import type { SdkReply, SdkStatus } from './milvus-sdk.ts';

const DEADLINE_EXCEEDED = 4;
const UNAVAILABLE = 14;
const REFUSED_BY_GRPC: readonly unknown[] = [7, 16];

/** Codes of Milvus: authentication failed, and privilege missing. */
const REFUSED_BY_MILVUS: readonly number[] = [1400, 1401, 1402, 1403];
/** Service not ready, unavailable, rate limited, collection not loaded, node or channel lost. */
const RETRIABLE: readonly number[] = [0, 1, 2, 4, 8, 12, 101, 103, 106, 501, 502, 503, 901];
const COLLECTION_NOT_FOUND = 100;
const DATABASE_NOT_FOUND = 800;

/**
 * @param readsRows whether the call reads rows. The package returns an empty reply if the server does not have a call. As rows, that would
 *   be an empty answer, so a reply without a status is a failure.
 * @throws StoreFailure.
 */
export function checkStatus(reply: SdkReply, readsRows: boolean): void {
  if (readsRows && reply?.status === undefined) throw new StoreFailure('its reply has no status');
  // Some replies are the status, others have one.
  const status: SdkStatus = reply?.status ?? reply ?? {};
  const { error_code: errorCode = 'Success', code = 0 } = status;
  if ((errorCode === 'Success' || errorCode === '0') && code === 0) return;
  throw statusFailure(status);
}

export function failureOf(thrown: unknown): StoreFailure {
  if (thrown instanceof StoreFailure) return thrown;
  const { error_code, reason, code, details, message } = thrown as Record<string, unknown>;
  // Some calls of the package throw the reply of Milvus itself.
  if (typeof error_code === 'string' && typeof reason === 'string')
    return statusFailure({ error_code, code: Number(code ?? 0), reason });
  if (code === DEADLINE_EXCEEDED) return new StoreFailure('it did not answer in time');
  const text = typeof details === 'string' && details !== '' ? details : String(message ?? thrown);
  return new StoreFailure(text, {
    missing: missingIn(text),
    refused: REFUSED_BY_GRPC.includes(code),
    retry: code === UNAVAILABLE,
  });
}

function statusFailure({ error_code = 'Success', code = 0, reason = '', retriable = false }: SdkStatus): StoreFailure {
  return new StoreFailure(reason === '' ? error_code : reason, {
    missing: missingIn(reason, code),
    refused: REFUSED_BY_MILVUS.includes(code),
    retry: retriable || RETRIABLE.includes(code),
  });
}

function missingIn(reason: string, code?: number): 'collection' | 'database' | undefined {
  if (code === DATABASE_NOT_FOUND || /database not found|database:\w+ not exist/i.test(reason)) return 'database';
  const isMissing = /can't find collection|collection not found|collection not exist/i.test(reason);
  return code === COLLECTION_NOT_FOUND || isMissing ? 'collection' : undefined;
}

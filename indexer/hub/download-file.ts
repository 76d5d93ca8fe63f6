import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { ReceivedFile } from '../../src/base/net/received-file.ts';
import { TransientFailure, withTransferRetries } from '../../src/base/net/retries.ts';
import type { WatchedReply } from '../../src/base/net/watched-fetch.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import { partialOf } from '../../src/base/system/partial-file.ts';
import type { DownloadRecord } from './download-record.ts';
import type { HubClient } from './hub-client.ts';
import { fileAddress, pageOf, type RepositoryFile, type RepositoryListing, startHash } from './repository.ts';
import { writingFailed } from './writing-failed.ts';

interface FileDownload {
  readonly client: HubClient;
  readonly listing: RepositoryListing;
  readonly file: RepositoryFile;
  readonly record: DownloadRecord;
  readonly signal: AbortSignal;
  readonly onNotice?: (text: string) => void;
  /** Called with the number of bytes in the partial file, which falls to 0 when the transfer starts over. */
  onBytes(bytes: number): void;
}

/**
 * Downloads one file, resuming where an earlier attempt or run ended, and renames it to its target once its length and hash match the
 * hub's. Returns the number of transferred bytes. After DOWNLOAD_CORRUPT, which also reports a wrong length, the partial file is deleted;
 * after any other error it is kept, and the next call resumes from it. Throws HUB_NOT_FOUND, HUB_ACCESS_DENIED, HUB_UNREACHABLE,
 * HUB_REPLY_INVALID, DOWNLOAD_CORRUPT, DISK_FULL, OUTPUT_NOT_WRITABLE, CANCELLED.
 */
export async function downloadFile(download: FileDownload): Promise<number> {
  const { client, file, record, signal, onNotice, onBytes } = download;
  const target = record.target(file);
  await mkdir(dirname(target), { recursive: true }).catch(writingFailed(target));
  const kept = await record.resumableBytes(file);
  if (kept === 0) await record.setPartial(file, null);
  const path = partialOf(target);
  const handle = await open(path, kept > 0 ? 'r+' : 'w').catch(writingFailed(target));
  const received = new ReceivedFile({
    path,
    handle,
    bytes: file.bytes,
    startHash: () => startHash(file),
    signal,
    onBytes,
    tooLong: () => wrongLength(file, `more than ${file.bytes} bytes`),
    writingFailed: writingFailed(target),
  });
  const attempt = async (progressed: () => void): Promise<void> => {
    if (received.position < file.bytes) await fetchRest(download, received, progressed);
    const actual = received.digest();
    if (actual !== file.hash.value) await received.reject(wrongHash(file, target, actual));
  };
  let isCorrupt = false;
  try {
    await received.keep(kept);
    await withTransferRetries(attempt, { what: file.path, policy: client.retries, signal, note: onNotice });
    await handle.sync().catch(writingFailed(target));
  } catch (error) {
    isCorrupt = error instanceof TrawlError && error.code === 'DOWNLOAD_CORRUPT';
    throw error;
  } finally {
    await handle.close();
    if (isCorrupt) await rm(path, { force: true });
  }
  await rename(path, target).catch(writingFailed(target));
  await syncFolder(dirname(target));
  await record.setFinished(file);
  return received.transferred;
}

async function fetchRest(download: FileDownload, received: ReceivedFile, progressed: () => void): Promise<void> {
  const { client, listing, file, record, signal } = download;
  const etag = record.etag(file);
  const headers: Record<string, string> = {};
  if (received.position > 0) {
    headers['range'] = `bytes=${received.position}-`;
    if (etag !== null) headers['if-range'] = etag;
  }
  const reply = await client.get(fileAddress(client, listing, file.path), headers, signal);
  try {
    await startReading(download, received, reply);
    await received.append(reply.body(), progressed);
  } finally {
    reply.drop();
  }
}

/** Checks status and headers of a reply. Starts over if its body does not continue the partial file. */
async function startReading(
  { client, listing, file, record }: FileDownload,
  received: ReceivedFile,
  reply: WatchedReply,
): Promise<void> {
  const { status, headers } = reply;
  if (status === 206) {
    const [, first, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get('content-range') ?? '') ?? [];
    if (Number(first) !== received.position) {
      await received.startOver();
      throw new TransientFailure('the server sent another range than requested');
    }
    if (total !== '*' && Number(total) !== file.bytes) throw wrongLength(file, `${total} bytes`);
  } else if (status === 200) {
    const length = headers.get('content-length');
    if (length !== null && Number(length) !== file.bytes) throw wrongLength(file, `${length} bytes`);
    // The body is the whole file: no range was requested, the server does not support ranges, or the file has changed.
    await received.startOver();
  } else if (status === 416) {
    await received.startOver();
    throw new TransientFailure('the server does not have the requested range');
  } else {
    throw client.failure(reply, {
      repository: pageOf(listing.repository),
      revision: listing.commit,
      path: file.path,
    });
  }
  // Weak ETags do not identify bytes, so If-Range cannot use them.
  const etag = headers.get('etag')?.startsWith('"') ? headers.get('etag') : null;
  if (etag !== record.etag(file)) await record.setPartial(file, etag);
}

function wrongHash({ path, hash }: RepositoryFile, target: string, actual: string): TrawlError {
  return new TrawlError(
    'DOWNLOAD_CORRUPT',
    `${path} has the ${hash.algorithm} ${actual}; the hub says ${hash.value}. The downloaded file was deleted. ${TRY_AGAIN}`,
    { details: { path, target, actual, expected: hash.value } },
  );
}

function wrongLength({ path, bytes }: RepositoryFile, length: string): TrawlError {
  return new TrawlError(
    'DOWNLOAD_CORRUPT',
    `The server sends ${length} for ${path}; the hub says ${bytes}. The downloaded part was deleted. ${TRY_AGAIN}`,
    { details: { path, expectedBytes: bytes } },
  );
}

const TRY_AGAIN = 'Try again; if the error persists, the server or a proxy sends a wrong file.';

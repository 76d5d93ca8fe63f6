import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { ReceivedFile } from '../../src/base/net/received-file.ts';
import { TransientFailure, withTransferRetries } from '../../src/base/net/retries.ts';
import type { WatchedReply } from '../../src/base/net/watched-fetch.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import { partialOf } from '../../src/base/system/partial-file.ts';
import { startHash } from './content-hash.ts';
import { type DownloadRecord, hashText } from './download-record.ts';
import type { HubClient } from './hub-client.ts';
import { failureOf } from './hub-error.ts';
import { fileAddress, pageOf, type RepositoryFile, type RepositoryListing } from './repository.ts';
import { writingFailed } from './writing-failed.ts';

export interface FileDownload {
  readonly client: HubClient;
  readonly listing: RepositoryListing;
  readonly file: RepositoryFile;
  /** Path of the finished file. Until it is complete and checked it is `<target>.partial`. */
  readonly target: string;
  readonly record: DownloadRecord;
  readonly signal: AbortSignal;
  readonly onNotice?: (text: string) => void;
  /** Called with the number of bytes in the partial file, which falls to 0 when the transfer starts over. */
  onBytes(bytes: number): void;
}

/** Number of bytes of the `.partial` file from which a download can resume; 0 if it must start over. */
export async function usablePartial(target: string, file: RepositoryFile, record: DownloadRecord): Promise<number> {
  if (record.partial(file.path)?.hash !== hashText(file.hash)) return 0;
  const bytes = (await stat(partialOf(target)).catch(() => undefined))?.size ?? 0;
  return bytes <= file.bytes ? bytes : 0;
}

/**
 * Downloads one file, resuming where an earlier attempt or run ended, and renames it to its target once its length and hash
 * match the hub's. Returns the number of transferred bytes. After DOWNLOAD_CORRUPT, which also reports a wrong length, the partial
 * file is deleted; after any other error it is kept, and the next call resumes from it.
 *
 * @throws TrawlError HUB_NOT_FOUND, HUB_ACCESS_DENIED, HUB_UNREACHABLE, HUB_REPLY_INVALID, DOWNLOAD_CORRUPT, DISK_FULL,
 * OUTPUT_NOT_WRITABLE, CANCELLED.
 */
export async function downloadFile(download: FileDownload): Promise<number> {
  const { client, file, target, record, signal, onNotice, onBytes } = download;
  await mkdir(dirname(target), { recursive: true }).catch(writingFailed(target));
  const kept = await usablePartial(target, file, record);
  if (kept === 0) await record.setPartial(file.path, { hash: hashText(file.hash), etag: null });
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
    if (actual !== file.hash.value) await received.reject(wrongHash(download, actual));
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
  const { mtimeMs } = await stat(target);
  await record.setFinished(file.path, { hash: hashText(file.hash), bytes: file.bytes, mtimeMs });
  return received.transferred;
}

async function fetchRest(download: FileDownload, received: ReceivedFile, progressed: () => void): Promise<void> {
  const { client, listing, file, record, signal } = download;
  const etag = record.partial(file.path)?.etag ?? null;
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
  { status, headers }: WatchedReply,
): Promise<void> {
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
    const { endpoint, token } = client.settings;
    const [repository, revision, withToken] = [pageOf(listing.repository), listing.commit, token !== undefined];
    throw failureOf({ status, headers, endpoint, repository, revision, path: file.path, withToken });
  }
  const etag = strongEtag(headers);
  if (etag !== record.partial(file.path)?.etag) await record.setPartial(file.path, { hash: hashText(file.hash), etag });
}

function wrongHash({ file, target }: FileDownload, actual: string): TrawlError {
  return new TrawlError(
    'DOWNLOAD_CORRUPT',
    `${file.path} has the ${file.hash.algorithm} ${actual}; the hub says ${file.hash.value}. The downloaded file was deleted. ` +
      'Try again; if the error persists, the server or a proxy sends a wrong file.',
    { details: { path: file.path, target, actual, expected: file.hash.value } },
  );
}

function wrongLength({ path, bytes }: RepositoryFile, length: string): TrawlError {
  return new TrawlError(
    'DOWNLOAD_CORRUPT',
    `The server sends ${length} for ${path}; the hub says ${bytes}. The downloaded part was deleted. ` +
      'Try again; if the error persists, the server or a proxy sends a wrong file.',
    { details: { path, expectedBytes: bytes } },
  );
}

/** Weak ETags do not identify bytes, so If-Range cannot use them. */
function strongEtag(headers: Headers): string | null {
  const etag = headers.get('etag');
  return etag?.startsWith('"') ? etag : null;
}

import type { Hash } from 'node:crypto';
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { cancelled } from '../src/abort.ts';
import { TrawlError } from '../src/errors.ts';
import { syncFolder } from '../src/system/durable-file.ts';
import { partialOf } from '../src/system/partial-file.ts';
import { TransientFailure } from '../src/transfer-retries.ts';
import type { WatchedReply } from '../src/watched-fetch.ts';
import { hashBeginning, startHash } from './content-hash.ts';
import { type DownloadRecord, hashText } from './download-record.ts';
import type { HubClient } from './hub-client.ts';
import { failureOf } from './hub-error.ts';
import { fileAddress, pageOf, type RepositoryFile, type RepositoryListing } from './repository.ts';
import { withHubRetries } from './retry.ts';
import { writingFailed } from './writing-failed.ts';

/** An attempt that receives this many bytes resets the count of consecutive failures (`withRetries`). */
const PROGRESS_BYTES = 1024 * 1024;

export interface FileDownload {
  readonly client: HubClient;
  readonly listing: RepositoryListing;
  readonly file: RepositoryFile;
  /** Path of the finished file. Until it is complete and checked it is `<target>.partial`. */
  readonly target: string;
  readonly record: DownloadRecord;
  readonly signal: AbortSignal;
  readonly onNotice?: ((text: string) => void) | undefined;
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
  const { client, file, target, record, signal, onNotice } = download;
  await mkdir(dirname(target), { recursive: true }).catch(writingFailed(target));
  const kept = await usablePartial(target, file, record);
  if (kept === 0) await record.setPartial(file.path, { hash: hashText(file.hash), etag: null });
  const handle = await open(partialOf(target), kept > 0 ? 'r+' : 'w').catch(writingFailed(target));
  const transfer = new Transfer(download, handle);
  // Whether the partial file has the hub's hash and is flushed to disk.
  let complete = false;
  try {
    await transfer.resumeAfter(kept);
    await withHubRetries((progressed) => transfer.attempt(progressed), {
      what: file.path,
      limits: client.limits,
      signal,
      note: onNotice,
    });
    await handle.sync().catch(writingFailed(target));
    complete = true;
  } finally {
    await handle.close();
    if (transfer.corrupt && !complete) await rm(partialOf(target), { force: true });
  }
  await rename(partialOf(target), target).catch(writingFailed(target));
  await syncFolder(dirname(target));
  const { mtimeMs } = await stat(target);
  await record.setFinished(file.path, { hash: hashText(file.hash), bytes: file.bytes, mtimeMs });
  return transfer.transferred;
}

class Transfer {
  readonly #download: FileDownload;
  readonly #handle: FileHandle;
  #hash: Hash;
  /** Bytes of the partial file; the hash covers all of them. */
  #position = 0;
  /** Whether the bytes of the partial file come from more than one reply. */
  #resumed = false;
  transferred = 0;
  corrupt = false;

  constructor(download: FileDownload, handle: FileHandle) {
    this.#download = download;
    this.#handle = handle;
    this.#hash = startHash(download.file);
  }

  async resumeAfter(bytes: number): Promise<void> {
    const { target, signal, onBytes } = this.#download;
    await hashBeginning(this.#hash, partialOf(target), bytes, signal);
    this.#position = bytes;
    onBytes(bytes);
  }

  async attempt(progressed: () => void): Promise<void> {
    const { file } = this.#download;
    if (this.#position < file.bytes) await this.#fetchRest(progressed);
    else await this.#handle.truncate(file.bytes);
    await this.#check();
  }

  async #fetchRest(progressed: () => void): Promise<void> {
    const { client, listing, file, record, signal, onBytes } = this.#download;
    const etag = record.partial(file.path)?.etag ?? null;
    const headers: Record<string, string> = {};
    if (this.#position > 0) {
      headers['range'] = `bytes=${this.#position}-`;
      if (etag !== null) headers['if-range'] = etag;
      this.#resumed = true;
    }
    const reply = await client.get(fileAddress(client, listing, file.path), headers, signal);
    try {
      await this.#startReading(reply);
      const start = this.#position;
      for await (const chunk of reply.body()) {
        if (this.#position + chunk.byteLength > file.bytes) throw this.#wrong(`more than ${file.bytes} bytes`);
        await this.#write(chunk);
        this.transferred += chunk.byteLength;
        onBytes(this.#position);
        if (this.#position - start >= PROGRESS_BYTES) progressed();
        // After an abort, `fetch` may still deliver buffered chunks.
        if (signal.aborted) throw cancelled();
      }
    } finally {
      reply.drop();
    }
    if (this.#position < file.bytes) {
      throw new TransientFailure(`the transfer ended after ${this.#position} of ${file.bytes} bytes`);
    }
  }

  /** Checks status and headers of a reply. Starts over if its body does not continue the partial file. */
  async #startReading({ status, headers }: WatchedReply): Promise<void> {
    const { client, listing, file, record } = this.#download;
    if (status === 206) {
      const [, first, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get('content-range') ?? '') ?? [];
      if (Number(first) !== this.#position) {
        await this.#startOver();
        throw new TransientFailure('the server sent another range than requested');
      }
      if (total !== '*' && Number(total) !== file.bytes) throw this.#wrong(`${total} bytes`);
    } else if (status === 200) {
      const length = headers.get('content-length');
      if (length !== null && Number(length) !== file.bytes) throw this.#wrong(`${length} bytes`);
      // The body is the whole file: no range was requested, the server does not support ranges, or the file has changed.
      await this.#startOver();
    } else if (status === 416) {
      await this.#startOver();
      throw new TransientFailure('the server does not have the requested range');
    } else {
      const { endpoint, token } = client.settings;
      const [repository, revision, withToken] = [pageOf(listing.repository), listing.commit, token !== undefined];
      throw failureOf({ status, headers, endpoint, repository, revision, path: file.path, withToken });
    }
    const etag = strongEtag(headers);
    if (etag !== record.partial(file.path)?.etag)
      await record.setPartial(file.path, { hash: hashText(file.hash), etag });
  }

  async #write(chunk: Uint8Array): Promise<void> {
    const { target } = this.#download;
    let written = 0;
    while (written < chunk.byteLength) {
      const rest = chunk.byteLength - written;
      const { bytesWritten } = await this.#handle
        .write(chunk, written, rest, this.#position)
        .catch(writingFailed(target));
      this.#hash.update(chunk.subarray(written, written + bytesWritten));
      written += bytesWritten;
      this.#position += bytesWritten;
    }
  }

  async #startOver(): Promise<void> {
    await this.#handle.truncate(0);
    this.#hash = startHash(this.#download.file);
    this.#position = 0;
    this.#resumed = false;
    this.#download.onBytes(0);
  }

  async #check(): Promise<void> {
    const { file, target } = this.#download;
    const actual = this.#hash.digest('hex');
    if (actual === file.hash.value) return;
    const resumed = this.#resumed;
    // The bytes are wrong, and a hash cannot be updated after `digest`: empty the file, start a new hash.
    await this.#startOver();
    if (resumed)
      throw new TransientFailure('the resumed file does not have the hash of the file on the hub; starting over');
    this.corrupt = true;
    throw new TrawlError(
      'DOWNLOAD_CORRUPT',
      `${file.path} has the ${file.hash.algorithm} ${actual}; the hub says ${file.hash.value}. The downloaded file was deleted. ` +
        'Try again; if the error persists, the server or a proxy sends a wrong file.',
      { details: { path: file.path, target, actual, expected: file.hash.value } },
    );
  }

  #wrong(length: string): TrawlError {
    const { file } = this.#download;
    this.corrupt = true;
    return new TrawlError(
      'DOWNLOAD_CORRUPT',
      `The server sends ${length} for ${file.path}; the hub says ${file.bytes}. The downloaded part was deleted. ` +
        'Try again; if the error persists, the server or a proxy sends a wrong file.',
      { details: { path: file.path, expectedBytes: file.bytes } },
    );
  }
}

/** Weak ETags do not identify bytes, so If-Range cannot use them. */
function strongEtag(headers: Headers): string | null {
  const etag = headers.get('etag');
  return etag?.startsWith('"') ? etag : null;
}

import type { Hash } from 'node:crypto';
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { cancelled } from '../src/abort.ts';
import { TrawlError } from '../src/errors.ts';
import { syncFolder } from '../src/manifest/write-json.ts';
import { hashBeginning, startHash } from './content-hash.ts';
import { type DownloadRecord, hashText } from './download-record.ts';
import type { HubClient, HubReply } from './hub-client.ts';
import { failureOf } from './hub-error.ts';
import { fileAddress, pageOf, type RepositoryFile, type RepositoryListing } from './repository.ts';
import { TransientFailure, withRetries } from './retry.ts';
import { writingFailed } from './writing-failed.ts';

/** Progress of so many bytes makes the failures count anew. */
const PROGRESS_BYTES = 1024 * 1024;

export interface FileDownload {
  readonly client: HubClient;
  readonly listing: RepositoryListing;
  readonly file: RepositoryFile;
  /** Where the file is to be. Until it is whole and checked it is `<target>.partial`. */
  readonly target: string;
  readonly record: DownloadRecord;
  readonly signal: AbortSignal;
  readonly onNotice?: ((text: string) => void) | undefined;
  /** Bytes of the file that are there; falls where a transfer begins anew. */
  onBytes(bytes: number): void;
}

/** How much of a file a `.partial` holds that can be kept. */
export async function usablePartial(target: string, file: RepositoryFile, record: DownloadRecord): Promise<number> {
  if (record.partial(file.path)?.hash !== hashText(file.hash)) return 0;
  const bytes = (await stat(partialOf(target)).catch(() => undefined))?.size ?? 0;
  return bytes <= file.bytes ? bytes : 0;
}

export function partialOf(target: string): string {
  return `${target}.partial`;
}

/**
 * Fetches one file, going on where an earlier attempt or run ended, and puts it in its place when its length and hash are
 * the hub's. Returns the bytes that were transferred. What has arrived is kept on every error but a wrong hash.
 *
 * @throws TrawlError HUB_NOT_FOUND, HUB_ACCESS_DENIED, HUB_UNREACHABLE, HUB_REPLY_INVALID, DOWNLOAD_CORRUPT, DISK_FULL,
 * OUTPUT_NOT_WRITABLE, CANCELLED
 */
export async function downloadFile(download: FileDownload): Promise<number> {
  const { client, file, target, record, signal, onNotice } = download;
  await mkdir(dirname(target), { recursive: true }).catch(writingFailed(target));
  const kept = await usablePartial(target, file, record);
  if (kept === 0) await record.setPartial(file.path, { hash: hashText(file.hash), etag: null });
  const handle = await open(partialOf(target), kept > 0 ? 'r+' : 'w').catch(writingFailed(target));
  const transfer = new Transfer(download, handle);
  let durable = false;
  try {
    await transfer.takeKept(kept);
    await withRetries((progressed) => transfer.attempt(progressed), {
      what: file.path,
      limits: client.limits,
      signal,
      onNotice,
    });
    await handle.sync().catch(writingFailed(target));
    durable = true;
  } finally {
    await handle.close();
    if (transfer.corrupt && !durable) await rm(partialOf(target), { force: true });
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
  /** Bytes of the partial file, all of them in the hash. */
  #position = 0;
  /** Whether the partial file is made of more than one reply. */
  #resumed = false;
  transferred = 0;
  corrupt = false;

  constructor(download: FileDownload, handle: FileHandle) {
    this.#download = download;
    this.#handle = handle;
    this.#hash = startHash(download.file);
  }

  async takeKept(bytes: number): Promise<void> {
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
      await this.#begin(reply);
      const begun = this.#position;
      for await (const piece of reply.body()) {
        if (this.#position + piece.byteLength > file.bytes) throw this.#wrong(`more than ${file.bytes} bytes`);
        await this.#write(piece);
        this.transferred += piece.byteLength;
        onBytes(this.#position);
        if (this.#position - begun >= PROGRESS_BYTES) progressed();
        // fetch may hand out what it has buffered after an abort.
        if (signal.aborted) throw cancelled();
      }
    } finally {
      await reply.drop();
    }
    if (this.#position < file.bytes) {
      throw new TransientFailure(`the transfer ended after ${this.#position} of ${file.bytes} bytes`);
    }
  }

  /** Looks at the head of a reply and starts over where it does not go on with what is there. */
  async #begin({ status, headers }: HubReply): Promise<void> {
    const { client, listing, file, record } = this.#download;
    if (status === 206) {
      const [, first, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get('content-range') ?? '') ?? [];
      if (Number(first) !== this.#position) {
        await this.#startOver();
        throw new TransientFailure('the server sent another part than was asked for');
      }
      if (total !== '*' && Number(total) !== file.bytes) throw this.#wrong(`${total} bytes`);
    } else if (status === 200) {
      const length = headers.get('content-length');
      if (length !== null && Number(length) !== file.bytes) throw this.#wrong(`${length} bytes`);
      // The server knows no ranges, or has another file than the one that was begun.
      await this.#startOver();
    } else if (status === 416) {
      await this.#startOver();
      throw new TransientFailure('the server has no such part of the file');
    } else {
      const { endpoint, token } = client.settings;
      const [repository, revision, withToken] = [pageOf(listing.repository), listing.commit, token !== undefined];
      throw failureOf({ status, headers, endpoint, repository, revision, path: file.path, withToken });
    }
    const etag = strongEtag(headers);
    if (etag !== record.partial(file.path)?.etag)
      await record.setPartial(file.path, { hash: hashText(file.hash), etag });
  }

  async #write(piece: Uint8Array): Promise<void> {
    const { target } = this.#download;
    let written = 0;
    while (written < piece.byteLength) {
      const rest = piece.byteLength - written;
      const { bytesWritten } = await this.#handle
        .write(piece, written, rest, this.#position)
        .catch(writingFailed(target));
      this.#hash.update(piece.subarray(written, written + bytesWritten));
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
    // A digest can be taken once, and there is nothing to keep.
    await this.#startOver();
    if (resumed) throw new TransientFailure('the parts do not make the file that the hub has; beginning anew');
    this.corrupt = true;
    throw new TrawlError(
      'DOWNLOAD_CORRUPT',
      `${file.path} has the ${file.hash.algorithm} ${actual}; the hub says ${file.hash.value}. It was not kept. Try again; if ` +
        'it comes again, the server or a proxy on the way gives out a wrong file.',
      { details: { path: file.path, target, actual, expected: file.hash.value } },
    );
  }

  #wrong(length: string): TrawlError {
    const { file } = this.#download;
    this.corrupt = true;
    return new TrawlError(
      'DOWNLOAD_CORRUPT',
      `The server sends ${length} for ${file.path}; the hub says ${file.bytes}. It was not kept. Try again; if it comes ` +
        'again, the server or a proxy on the way gives out a wrong file.',
      { details: { path: file.path, expectedBytes: file.bytes } },
    );
  }
}

/** Weak ones say nothing about bytes, so they cannot be used for If-Range. */
function strongEtag(headers: Headers): string | null {
  const etag = headers.get('etag');
  return etag?.startsWith('"') ? etag : null;
}

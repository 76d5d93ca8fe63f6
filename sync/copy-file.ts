import { createHash, type Hash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { throwIfCancelled } from '../src/abort.ts';
import { TrawlError } from '../src/errors.ts';
import type { IndexFile, IndexSnapshot } from '../src/index-files/index-snapshot.ts';
import { writeFailure } from '../src/system/write-failure.ts';
import { type RetryLimits, TransientFailure } from '../src/transfer-retries.ts';
import { fileProblem } from './check-file.ts';
import type { CopyJournal } from './copy-journal.ts';
import type { CopySource } from './copy-source.ts';
import type { RateLimit } from './rate-limit.ts';
import { withSourceRetries } from './retry.ts';

/** An attempt that gets this much counts as progress. */
const PROGRESS_BYTES = 1024 * 1024;

export interface FileCopy {
  readonly source: CopySource;
  readonly snapshot: IndexSnapshot;
  readonly file: IndexFile;
  /** The folder of the unfinished copy. */
  readonly folder: string;
  readonly journal: CopyJournal;
  readonly rate: RateLimit;
  readonly limits: RetryLimits;
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
  /** Bytes of the file that are there; falls to 0 when the file is begun anew. */
  readonly onBytes: (bytes: number) => void;
}

/**
 * Copies a file and checks it, from where an earlier run ended. Returns the bytes that were transferred. What was written is kept after
 * an error, but for a wrong checksum.
 *
 * @throws TrawlError INDEX_CHECKSUM_MISMATCH, SOURCE_CHANGED, SOURCE_REFUSED, SOURCE_UNREACHABLE, DISK_FULL, OUTPUT_NOT_WRITABLE, CANCELLED.
 */
export async function copyFile(copy: FileCopy): Promise<number> {
  const { source, file, folder, journal, signal, note, limits } = copy;
  const target = join(folder, file.path);
  const retrying = { what: file.path, limits, signal, note };
  const { bytes, tag } = await withSourceRetries(() => source.facts(file.path, signal), retrying);
  if (file.bytes !== null && bytes !== file.bytes) {
    throw mismatch(source, file, `it has ${bytes} bytes, but the manifest says ${file.bytes}`);
  }
  let handle: FileHandle;
  let kept: number;
  try {
    await mkdir(dirname(target), { recursive: true });
    kept = await keptBytes(target, file, { tag, bytes, journal });
    if (kept === 0) journal.begin(file.path, tag);
    // A new file, because the old one may be that of another copy under a second name.
    if (kept === 0) await rm(target, { force: true });
    const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    handle = await open(target, O_RDWR | O_NOFOLLOW | (kept === 0 ? O_CREAT | O_EXCL : 0));
  } catch (error) {
    throw writeFailure(error, target);
  }
  const transfer = new Transfer(copy, handle, bytes);
  try {
    await transfer.keep(target, kept);
    await withSourceRetries((progressed) => transfer.attempt(target, progressed), retrying);
    await handle.sync();
  } catch (error) {
    throw writeFailure(error, target);
  } finally {
    await handle.close();
    if (transfer.isWrong) await rm(target, { force: true });
  }
  journal.checked(file);
  return transfer.transferred;
}

/** The bytes of an earlier run. Without a checksum of the file they count only if the source has the very same file. */
async function keptBytes(
  target: string,
  { path, sha256 }: IndexFile,
  { tag, bytes, journal }: { readonly tag: string; readonly bytes: number; readonly journal: CopyJournal },
): Promise<number> {
  const begun = journal.tagOf(path);
  if (begun === undefined || (sha256 === null && begun !== tag)) return 0;
  const found = await lstat(target).catch(() => undefined);
  return found?.isFile() === true && found.nlink === 1 && found.size <= bytes ? found.size : 0;
}

class Transfer {
  readonly #copy: FileCopy;
  readonly #handle: FileHandle;
  readonly #bytes: number;
  #hash: Hash = createHash('sha256');
  #position = 0;
  /** Whether the bytes come from more than one reply. */
  #resumed = false;
  transferred = 0;
  isWrong = false;

  constructor(copy: FileCopy, handle: FileHandle, bytes: number) {
    this.#copy = copy;
    this.#handle = handle;
    this.#bytes = bytes;
  }

  async keep(target: string, bytes: number): Promise<void> {
    const { signal, onBytes } = this.#copy;
    if (bytes > 0) {
      for await (const chunk of createReadStream(target, { end: bytes - 1, highWaterMark: 1024 * 1024 })) {
        throwIfCancelled(signal);
        this.#hash.update(chunk as Buffer);
      }
    }
    this.#position = bytes;
    this.#resumed = bytes > 0;
    onBytes(bytes);
  }

  async attempt(target: string, progressed: () => void): Promise<void> {
    const { source, file, signal, onBytes, rate } = this.#copy;
    if (this.#position < this.#bytes || this.#bytes === 0) {
      const start = this.#position;
      for await (const chunk of source.read(file.path, start, signal)) {
        throwIfCancelled(signal);
        await rate.take(chunk.byteLength, signal);
        if (this.#position + chunk.byteLength > this.#bytes) {
          this.isWrong = true;
          throw mismatch(source, file, `more than ${this.#bytes} bytes arrive`);
        }
        await this.#write(target, chunk);
        onBytes(this.#position);
        if (this.#position - start >= PROGRESS_BYTES) progressed();
      }
      if (this.#position < this.#bytes) {
        this.#resumed = true;
        throw new TransientFailure(`the transfer ended after ${this.#position} of ${this.#bytes} bytes`);
      }
    }
    await this.#check();
  }

  async #write(target: string, chunk: Uint8Array): Promise<void> {
    for (let done = 0; done < chunk.byteLength; ) {
      const { bytesWritten } = await this.#handle
        .write(chunk, done, chunk.byteLength - done, this.#position)
        .catch((error: unknown) => {
          throw writeFailure(error, target);
        });
      this.#hash.update(chunk.subarray(done, done + bytesWritten));
      done += bytesWritten;
      this.#position += bytesWritten;
      this.transferred += bytesWritten;
    }
  }

  async #check(): Promise<void> {
    const { source, file, folder, snapshot, signal } = this.#copy;
    const sha256 = this.#hash.digest('hex');
    const problem =
      file.sha256 === null
        ? await fileProblem(folder, file, snapshot, signal)
        : sha256 === file.sha256
          ? undefined
          : `its sha256 is ${sha256}, but the manifest says ${file.sha256}`;
    if (problem === undefined) return;
    const resumed = this.#resumed;
    await this.#startOver();
    // The beginning may be what was wrong.
    if (resumed) throw new TransientFailure('the resumed file is not that of the manifest; begun anew');
    this.isWrong = true;
    throw mismatch(source, file, problem);
  }

  async #startOver(): Promise<void> {
    await this.#handle.truncate(0);
    this.#hash = createHash('sha256');
    this.#position = 0;
    this.#resumed = false;
    this.#copy.onBytes(0);
  }
}

function mismatch(source: CopySource, { path }: IndexFile, problem: string): TrawlError {
  return new TrawlError(
    'INDEX_CHECKSUM_MISMATCH',
    `${source.shown}: ${path} is not the file of the manifest: ${problem}. Check the source with \`trawl verify\`; what was copied before is kept.`,
    { details: { path } },
  );
}

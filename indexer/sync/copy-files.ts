import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile as copyWithinDisk, type FileHandle, link, lstat, mkdir, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isNodeError, TrawlError } from '../../src/base/errors.ts';
import { inParallel } from '../../src/base/in-parallel.ts';
import { ReceivedFile } from '../../src/base/net/received-file.ts';
import { type RetryPolicy, type TransferPolicy, withTransferRetries } from '../../src/base/net/retries.ts';
import { defined } from '../../src/base/objects.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import type { IndexFile, IndexSnapshot } from '../../src/index/files/index-snapshot.ts';
import { fileProblem } from './check-file.ts';
import type { CopiesFolder } from './copies-folder.ts';
import type { CopyJournal } from './copy-journal.ts';
import { type CopySource, SOURCE_RETRIES } from './copy-source.ts';
import type { CopyPlan } from './plan-copy.ts';

export interface CopyFilesOptions {
  /** Reads all files at the destination again, also those that an earlier run checked. */
  readonly check: boolean;
  /** Files that are copied at the same time. */
  readonly jobs: number;
  readonly bytesPerSecond: number | undefined;
  readonly retry?: Partial<RetryPolicy>;
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
  readonly onProgress: (progress: {
    readonly doneBytes: number;
    readonly totalBytes: number;
    readonly file: string;
  }) => void;
}

/**
 * Puts the planned files into the folder of the unfinished copy: as a second name of a file that is there, or transferred. Returns the bytes
 * that were transferred.
 *
 * @throws TrawlError INDEX_CHECKSUM_MISMATCH, SOURCE_CHANGED, SOURCE_REFUSED, SOURCE_UNREACHABLE, DISK_FULL, OUTPUT_NOT_WRITABLE,
 * CANCELLED; what was copied is kept.
 */
export async function copyFiles(
  copies: CopiesFolder,
  source: CopySource,
  snapshot: IndexSnapshot,
  { files }: CopyPlan,
  options: CopyFilesOptions,
): Promise<number> {
  const name = copies.staging(snapshot.id);
  const folder = copies.folderOf(name);
  const journal = copies.journal(name);
  const policy = { ...SOURCE_RETRIES, ...defined(options.retry) };
  const pace = rateLimit(options.bytesPerSecond);
  const transfer: Transfer = { source, snapshot, folder, journal, pace, policy, note: options.note };
  const totalBytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
  let doneBytes = 0;
  let transferred = 0;
  const copyOne = async ({ file, bytes, present }: CopyPlan['files'][number], signal: AbortSignal): Promise<void> => {
    const target = join(folder, file.path);
    let before = 0;
    const onBytes = (count: number): void => {
      doneBytes += count - before;
      before = count;
      options.onProgress({ file: file.path, doneBytes, totalBytes });
    };
    onBytes(0);
    if (typeof present === 'object' && (await linkFile(present.path, target))) {
      const isChecked = present.checked && !options.check;
      if (isChecked || (await fileProblem(folder, file, snapshot, signal)) === undefined) journal.checked(file);
      else await rm(target, { force: true });
    }
    if (!journal.isChecked(file)) {
      // `transferred += await …` would read the sum before the transfer and lose what other jobs add meanwhile.
      const count = await transferFile(transfer, file, signal, onBytes);
      transferred += count;
    }
    onBytes(bytes);
  };
  await mkdir(folder, { recursive: true });
  await inParallel(files, options.jobs, copyOne, options.signal);
  return transferred;
}

/** Makes a second name for a file, or a copy where the file system has no hard links. False if it is gone. */
async function linkFile(from: string, to: string): Promise<boolean> {
  try {
    await mkdir(dirname(to), { recursive: true });
    await rm(to, { force: true });
    await link(from, to);
  } catch (error) {
    if (!isNodeError(error)) throw error;
    if (error.code === 'ENOENT') return false;
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'ENOSYS', 'EXDEV'].includes(error.code!)) {
      throw writeFailure(error, to);
    }
    await copyWithinDisk(from, to).catch((failure: unknown) => {
      throw writeFailure(failure, to);
    });
  }
  return true;
}

interface Transfer {
  readonly source: CopySource;
  readonly snapshot: IndexSnapshot;
  readonly folder: string;
  readonly journal: CopyJournal;
  /** Delays the transfer of bytes to the allowed rate. */
  readonly pace: ReturnType<typeof rateLimit>;
  readonly policy: TransferPolicy;
  readonly note: (text: string) => void;
}

/**
 * Copies a file and checks it, from where an earlier run ended. Returns the bytes that were transferred. What was written is kept after
 * an error, but for a wrong checksum.
 *
 * @param onBytes called with the bytes of the file that are there; falls to 0 when the file is begun anew.
 */
async function transferFile(
  { source, snapshot, folder, journal, pace, policy, note }: Transfer,
  file: IndexFile,
  signal: AbortSignal,
  onBytes: (bytes: number) => void,
): Promise<number> {
  const target = join(folder, file.path);
  const retrying = { what: file.path, policy, signal, note };
  const { bytes, tag } = await withTransferRetries(() => source.facts(file.path, signal), retrying);
  if (file.bytes !== null && bytes !== file.bytes) {
    throw mismatch(source, file, `it has ${bytes} bytes, but the manifest says ${file.bytes}`);
  }
  let handle: FileHandle;
  let kept: number;
  try {
    await mkdir(dirname(target), { recursive: true });
    // Without a checksum of the file, the bytes of an earlier run count only if the source has the very same file.
    const begun = journal.tagOf(file.path);
    const mayResume = begun !== undefined && (file.sha256 !== null || begun === tag);
    kept = mayResume ? await bytesOfOwnFile(target, bytes) : 0;
    if (kept === 0) journal.begin(file.path, tag);
    // A new file, because the old one may be a second name of another copy's file.
    if (kept === 0) await rm(target, { force: true });
    const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    handle = await open(target, O_RDWR | O_NOFOLLOW | (kept === 0 ? O_CREAT | O_EXCL : 0));
  } catch (error) {
    throw writeFailure(error, target);
  }
  const received = new ReceivedFile({
    path: target,
    handle,
    bytes,
    startHash: () => createHash('sha256'),
    signal,
    onBytes,
    tooLong: () => mismatch(source, file, `more than ${bytes} bytes arrive`),
    writingFailed: (error) => {
      throw writeFailure(error, target);
    },
  });
  async function* pacedChunks(): AsyncGenerator<Uint8Array> {
    for await (const chunk of source.read(file.path, received.position, signal)) {
      await pace(chunk.byteLength, signal);
      yield chunk;
    }
  }
  const attempt = async (progressed: () => void): Promise<void> => {
    // An empty file is read too, because the source may have more.
    if (received.position < bytes || bytes === 0) await received.append(pacedChunks(), progressed);
    const problem = await fileProblem(folder, file, snapshot, signal, () => received.digest());
    if (problem !== undefined) await received.reject(mismatch(source, file, problem));
  };
  let isWrong = false;
  try {
    await received.keep(kept);
    await withTransferRetries(attempt, retrying);
    await handle.sync();
  } catch (error) {
    isWrong = error instanceof TrawlError && error.code === 'INDEX_CHECKSUM_MISMATCH';
    throw writeFailure(error, target);
  } finally {
    await handle.close();
    if (isWrong) await rm(target, { force: true });
  }
  journal.checked(file);
  return received.transferred;
}

/** Size of a file that has no second name and at most `bytes` bytes; 0 for any other. */
async function bytesOfOwnFile(path: string, bytes: number): Promise<number> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isFile() === true && found.nlink === 1 && found.size <= bytes ? found.size : 0;
}

function mismatch(source: CopySource, { path }: IndexFile, problem: string): TrawlError {
  return new TrawlError(
    'INDEX_CHECKSUM_MISMATCH',
    `${source.shown}: ${path} is not the file of the manifest: ${problem}. Check the source with \`trawl verify\`; what was copied before is kept.`,
    { details: { path } },
  );
}

/** Delays transfers so that all together take at most a number of bytes per second. */
function rateLimit(bytesPerSecond: number | undefined): (bytes: number, signal: AbortSignal) => Promise<void> {
  if (bytesPerSecond === undefined) return async () => undefined;
  /** By `performance.now()`: when the bytes so far are within the limit. */
  let freeAt = 0;
  return async (bytes, signal) => {
    const now = performance.now();
    freeAt = Math.max(freeAt, now) + (1000 * bytes) / bytesPerSecond;
    const wait = freeAt - now;
    // Shorter waits than timers keep are left to the next chunk.
    if (wait > 20) await sleep(wait, undefined, { signal }).catch(() => undefined);
  };
}

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { ReceivedFile } from '../../src/base/net/received-file.ts';
import { type TransferPolicy, withTransferRetries } from '../../src/base/net/retries.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import type { IndexFile, IndexSnapshot } from '../../src/index/files/index-snapshot.ts';
import { fileProblem } from './check-file.ts';
import type { CopyJournal } from './copy-journal.ts';
import type { CopySource } from './copy-source.ts';
import type { RateLimit } from './rate-limit.ts';

export interface FileCopy {
  readonly source: CopySource;
  readonly snapshot: IndexSnapshot;
  readonly file: IndexFile;
  /** The folder of the unfinished copy. */
  readonly folder: string;
  readonly journal: CopyJournal;
  readonly rate: RateLimit;
  readonly retries: TransferPolicy;
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
  const { source, file, folder, journal, signal, note, retries, onBytes } = copy;
  const target = join(folder, file.path);
  const retrying = { what: file.path, policy: retries, signal, note };
  const { bytes, tag } = await withTransferRetries(() => source.facts(file.path, signal), retrying);
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
  const attempt = async (progressed: () => void): Promise<void> => {
    // An empty file is read too, because the source may have more.
    if (received.position < bytes || bytes === 0)
      await received.append(pacedChunks(copy, received.position), progressed);
    const problem = await problemOf(copy, received);
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

/** The rest of the file from the source, no faster than the limit. */
async function* pacedChunks({ source, file, rate, signal }: FileCopy, offset: number): AsyncGenerator<Uint8Array> {
  for await (const chunk of source.read(file.path, offset, signal)) {
    await rate.take(chunk.byteLength, signal);
    yield chunk;
  }
}

/** Why a complete file is not that of the manifest; undefined if it is. */
async function problemOf(
  { file, folder, snapshot, signal }: FileCopy,
  received: ReceivedFile,
): Promise<string | undefined> {
  if (file.sha256 === null) return fileProblem(folder, file, snapshot, signal);
  const sha256 = received.digest();
  return sha256 === file.sha256 ? undefined : `its sha256 is ${sha256}, but the manifest says ${file.sha256}`;
}

function mismatch(source: CopySource, { path }: IndexFile, problem: string): TrawlError {
  return new TrawlError(
    'INDEX_CHECKSUM_MISMATCH',
    `${source.shown}: ${path} is not the file of the manifest: ${problem}. Check the source with \`trawl verify\`; what was copied before is kept.`,
    { details: { path } },
  );
}

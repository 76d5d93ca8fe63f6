import { rm, stat, statfs } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { hashBeginning } from '../../src/base/system/file-checksum.ts';
import { FileLock } from '../../src/base/system/file-lock.ts';
import { partialOf } from '../../src/base/system/partial-file.ts';
import { startHash } from './content-hash.ts';
import { usablePartial } from './download-file.ts';
import { type DownloadRecord, hashText, RECORD_PREFIX } from './download-record.ts';
import type { RepositoryFile } from './repository.ts';

/**
 * Whether the file is present and correct, according to the record of an earlier run or its hash.
 *
 * @throws TrawlError OUTPUT_NOT_WRITABLE if a different file has its name and was not downloaded by Trawl.
 */
export async function isPresent(
  folder: string,
  file: RepositoryFile,
  record: DownloadRecord,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const target = join(folder, file.path);
  const found = await stat(target).catch(() => undefined);
  if (found === undefined) return false;
  const known = record.finished(file.path);
  const sameSize = found.isFile() && found.size === file.bytes;
  if (sameSize) {
    if (known?.hash === hashText(file.hash) && known.bytes === found.size && known.mtimeMs === found.mtimeMs)
      return true;
    const hash = startHash(file);
    await hashBeginning(hash, target, file.bytes, signal);
    if (hash.digest('hex') === file.hash.value) {
      await record.setFinished(file.path, { hash: hashText(file.hash), bytes: file.bytes, mtimeMs: found.mtimeMs });
      return true;
    }
  }
  // A file of an earlier download is replaced once the new one is complete. Other files are not touched.
  if (known !== undefined) return false;
  throw new TrawlError(
    'OUTPUT_NOT_WRITABLE',
    `${target} already exists and is not the file on the hub. Remove it, or choose another folder.`,
  );
}

/** Removes downloaded files that are not in `wanted`. */
export async function pruneFolder(
  folder: string,
  record: DownloadRecord,
  wanted: readonly RepositoryFile[],
): Promise<void> {
  const keep = new Set(wanted.map(({ path }) => path));
  for (const path of record.paths().filter((known) => !keep.has(known))) {
    // The record may have been edited; never delete files outside the folder.
    if (path.split(/[/\\]/).includes('..')) continue;
    await rm(join(folder, path), { force: true });
    await rm(partialOf(join(folder, path)), { force: true });
    await record.forget(path);
  }
}

/** @throws TrawlError DISK_FULL if there is no room for the missing files and `reserveBytes` more. */
export async function checkFreeSpace(
  folder: string,
  missing: readonly RepositoryFile[],
  record: DownloadRecord,
  reserveBytes: number,
): Promise<void> {
  let needed = reserveBytes;
  for (const file of missing) needed += file.bytes - (await usablePartial(join(folder, file.path), file, record));
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  if (needed <= free) return;
  throw new TrawlError(
    'DISK_FULL',
    `${folder} needs ${gigabytes(needed)}, but only ${gigabytes(free)} are free. Free space, or choose a folder on another disk.`,
    { details: { needed, free } },
  );
}

function gigabytes(bytes: number): string {
  return bytes < 1e8 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

/** @throws TrawlError HUB_REPLY_INVALID for a file with a name that downloads use for their own files. */
export function checkFileNames(files: readonly RepositoryFile[]): void {
  const paths = new Set(files.map(({ path }) => path));
  for (const path of paths) {
    const clash = path.split('/').some((part) => part.startsWith(RECORD_PREFIX)) || paths.has(partialOf(path));
    if (!clash) continue;
    throw new TrawlError(
      'HUB_REPLY_INVALID',
      `The repository's file ${JSON.stringify(basename(path))} has a name that downloads use for their own files. Exclude it.`,
    );
  }
}

/** @throws TrawlError DOWNLOAD_LOCKED. */
export function lockFolder(folder: string): FileLock {
  const lock = FileLock.acquire(join(folder, `${RECORD_PREFIX}.lock`), 'exclusive');
  if (lock !== undefined) return lock;
  throw new TrawlError(
    'DOWNLOAD_LOCKED',
    `Another process is downloading into ${folder}. Wait for it or stop it, then run this command again.`,
  );
}

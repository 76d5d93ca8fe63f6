import { mkdir, rm, stat, statfs } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { inParallel } from '../../src/base/in-parallel.ts';
import { hashFile } from '../../src/base/system/file-checksum.ts';
import { FileLock } from '../../src/base/system/file-lock.ts';
import { partialOf } from '../../src/base/system/partial-file.ts';
import { downloadFile } from './download-file.ts';
import { DownloadRecord, RECORD_PREFIX } from './download-record.ts';
import { type ClientOptions, HubClient } from './hub-client.ts';
import { type HubSettings, readHubSettings } from './hub-settings.ts';
import {
  listRepository,
  pageOf,
  type Repository,
  type RepositoryFile,
  type RepositoryListing,
  startHash,
} from './repository.ts';
import { writingFailed } from './writing-failed.ts';

export interface DownloadProgress {
  readonly path: string;
  readonly bytes: number;
  readonly totalBytes: number;
  /** Over all files, including what was present before this run. */
  readonly allBytes: number;
  readonly allTotalBytes: number;
  readonly finishedFiles: number;
  readonly totalFiles: number;
}

interface PlanOptions extends ClientOptions {
  readonly repository: Repository;
  /** Branch, tag or commit; default main. */
  readonly revision?: string;
  /** The folder for the files; created if it does not exist. */
  readonly into: string;
  /** Selects the files; default: all. May throw. */
  readonly select?: (files: readonly RepositoryFile[]) => readonly RepositoryFile[];
  /** Default: from the environment. */
  readonly settings?: HubSettings;
  readonly signal?: AbortSignal;
  readonly onNotice?: (text: string) => void;
}

export interface DownloadOptions extends PlanOptions {
  /** Whether to remove files of an earlier run that are not selected now; default false. */
  readonly prune?: boolean;
  /** Free bytes needed in addition to the files. */
  readonly reserveBytes?: (files: readonly RepositoryFile[]) => number;
  /** Concurrent transfers; default 4. */
  readonly concurrency?: number;
  readonly onProgress?: (progress: DownloadProgress) => void;
}

export interface DownloadedRepository {
  /** Absolute. */
  readonly folder: string;
  readonly commit: string;
  readonly files: readonly RepositoryFile[];
  readonly transferredBytes: number;
}

/**
 * Downloads files of a repository into a folder, several at once, and checks each against the hub's size and hash. Another
 * run with the same folder resumes an interrupted one and skips files that are present and correct. Memory does not depend
 * on the file sizes. Throws the errors of `listRepository` and `downloadFile`, DOWNLOAD_LOCKED, HUB_OFFLINE, CONFIG_INVALID.
 */
export async function downloadRepository(options: DownloadOptions): Promise<DownloadedRepository> {
  const selection = await selectFiles(options);
  const { folder, listing, files } = selection;
  checkFileNames(files);
  await mkdir(folder, { recursive: true }).catch(writingFailed(folder));
  const lock = lockFolder(folder);
  try {
    const record = await DownloadRecord.open(folder, pageOf(options.repository));
    if (options.prune === true) await pruneFolder(record, files);
    const missing: RepositoryFile[] = [];
    for (const file of files) if (!(await isPresent(file, record, options.signal))) missing.push(file);
    await checkFreeSpace(folder, missing, record, options.reserveBytes?.(files) ?? 0);
    const transferredBytes = await fetchMissing(missing, record, selection, options);
    return { folder, commit: listing.commit, files, transferredBytes };
  } finally {
    lock.release();
  }
}

export interface DownloadPlan {
  /** Absolute. */
  readonly folder: string;
  /** The commit that the revision names now; a download of this commit has these files. */
  readonly commit: string;
  readonly files: readonly RepositoryFile[];
  readonly bytes: number;
  /** Bytes that are not in the folder yet. */
  readonly missingBytes: number;
}

/**
 * Lists the files that a download would transfer, without writing anything. An existing file of the right size counts as
 * present; only the download hashes it. Throws the errors of `listRepository` and `select`, HUB_OFFLINE, CONFIG_INVALID, and
 * OUTPUT_NOT_WRITABLE for a folder of another repository.
 */
export async function planDownload(options: PlanOptions): Promise<DownloadPlan> {
  const { folder, listing, files } = await selectFiles(options);
  const record = await DownloadRecord.open(folder, pageOf(options.repository));
  let missingBytes = 0;
  for (const file of files) {
    const isPresent = (await stat(record.target(file)).catch(() => undefined))?.size === file.bytes;
    if (!isPresent) missingBytes += file.bytes - (await record.resumableBytes(file));
  }
  return { folder, commit: listing.commit, files, bytes: totalBytes(files), missingBytes };
}

interface Selection {
  readonly client: HubClient;
  /** Absolute. */
  readonly folder: string;
  readonly listing: RepositoryListing;
  readonly files: readonly RepositoryFile[];
}

async function selectFiles({ repository, into, select, settings, ...options }: PlanOptions): Promise<Selection> {
  const client = new HubClient(settings ?? (await readHubSettings()), options);
  const listing = await listRepository(client, repository, options);
  return { client, folder: resolve(into), listing, files: select?.(listing.files) ?? listing.files };
}

function totalBytes(files: readonly RepositoryFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

async function fetchMissing(
  missing: readonly RepositoryFile[],
  record: DownloadRecord,
  { client, listing, files }: Selection,
  { signal, onNotice, onProgress, concurrency = 4 }: DownloadOptions,
): Promise<number> {
  const allTotalBytes = totalBytes(files);
  let allBytes = allTotalBytes - totalBytes(missing);
  let finishedFiles = files.length - missing.length;
  let transferred = 0;
  const report = (path: string, bytes: number, total: number): void =>
    onProgress?.({
      path,
      bytes,
      totalBytes: total,
      allBytes,
      allTotalBytes,
      finishedFiles,
      totalFiles: files.length,
    });

  const fetchOne = async (file: RepositoryFile, stop: AbortSignal): Promise<void> => {
    let received = 0;
    const onBytes = (bytes: number): void => {
      allBytes += bytes - received;
      received = bytes;
      report(file.path, bytes, file.bytes);
    };
    const fileBytes = await downloadFile({ client, listing, file, record, signal: stop, onNotice, onBytes });
    // Not `transferred += await …`, which would lose the bytes of files that finish meanwhile.
    transferred += fileBytes;
    finishedFiles++;
    report(file.path, file.bytes, file.bytes);
  };
  // The partial files of transfers that a failure stops are kept.
  await inParallel(missing, concurrency, fetchOne, signal);
  throwIfCancelled(signal);
  return transferred;
}

/**
 * Whether the file is present and correct, according to the record of an earlier run or its hash. Throws OUTPUT_NOT_WRITABLE if a different
 * file has its name and was not downloaded by Trawl.
 */
async function isPresent(file: RepositoryFile, record: DownloadRecord, signal?: AbortSignal): Promise<boolean> {
  const target = record.target(file);
  const found = await stat(target).catch(() => undefined);
  if (found === undefined) return false;
  if (found.isFile() && found.size === file.bytes) {
    if (record.isUnchanged(file)) return true;
    const hash = startHash(file);
    await hashFile(hash, target, { signal, part: { offset: 0, bytes: file.bytes } });
    if (hash.digest('hex') === file.hash.value) {
      await record.setFinished(file);
      return true;
    }
  }
  // A file of an earlier download is replaced once the new one is complete. Other files are not touched.
  if (record.hasFinished(file)) return false;
  throw new TrawlError(
    'OUTPUT_NOT_WRITABLE',
    `${target} already exists and is not the file on the hub. Remove it, or choose another folder.`,
  );
}

/** Removes downloaded files that are not in `wanted`. */
async function pruneFolder(record: DownloadRecord, wanted: readonly RepositoryFile[]): Promise<void> {
  const keep = new Set(wanted.map(({ path }) => path));
  for (const path of record.paths().filter((known) => !keep.has(known))) {
    // The record may have been edited; never delete files outside the folder.
    if (path.split(/[/\\]/).includes('..')) continue;
    const target = record.target({ path });
    for (const file of [target, partialOf(target)]) await rm(file, { force: true });
    await record.forget(path);
  }
}

/** @throws TrawlError DISK_FULL if there is no room for the missing files and `reserveBytes` more. */
async function checkFreeSpace(
  folder: string,
  missing: readonly RepositoryFile[],
  record: DownloadRecord,
  reserveBytes: number,
): Promise<void> {
  let needed = reserveBytes;
  for (const file of missing) needed += file.bytes - (await record.resumableBytes(file));
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
function checkFileNames(files: readonly RepositoryFile[]): void {
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
function lockFolder(folder: string): FileLock {
  const lock = FileLock.acquire(join(folder, `${RECORD_PREFIX}.lock`), 'exclusive');
  if (lock !== undefined) return lock;
  throw new TrawlError(
    'DOWNLOAD_LOCKED',
    `Another process is downloading into ${folder}. Wait for it or stop it, then run this command again.`,
  );
}

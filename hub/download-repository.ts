import { mkdir, rm, stat, statfs } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { cancelled } from '../src/abort.ts';
import { TrawlError } from '../src/errors.ts';
import { FileLock } from '../src/file-lock.ts';
import { hashBeginning, startHash } from './content-hash.ts';
import { downloadFile, partialOf, usablePartial } from './download-file.ts';
import { BOOKKEEPING, DownloadRecord, hashText } from './download-record.ts';
import { type ClientOptions, HubClient } from './hub-client.ts';
import { type HubSettings, readHubSettings } from './hub-settings.ts';
import { listRepository, pageOf, type Repository, type RepositoryFile, type RepositoryListing } from './repository.ts';
import { writingFailed } from './writing-failed.ts';

export interface DownloadProgress {
  /** The file that something came of. */
  readonly path: string;
  readonly bytes: number;
  readonly totalBytes: number;
  /** Over all files, what an earlier run brought included. */
  readonly allBytes: number;
  readonly allTotalBytes: number;
  readonly finishedFiles: number;
  readonly totalFiles: number;
}

export interface DownloadOptions extends ClientOptions {
  readonly repository: Repository;
  /** Branch, tag or commit; default main. */
  readonly revision?: string | undefined;
  /** The folder for the files; made where it is missing. */
  readonly into: string;
  /** Which files are wanted; default all. May throw. */
  readonly select?: ((files: readonly RepositoryFile[]) => readonly RepositoryFile[]) | undefined;
  /** Removes files that an earlier run brought and that are not wanted any more. */
  readonly prune?: boolean | undefined;
  /** Bytes that have to be free besides those of the files. */
  readonly reserveBytes?: ((files: readonly RepositoryFile[]) => number) | undefined;
  /** Files at once; default 4. */
  readonly concurrency?: number | undefined;
  /** Default: from the environment. */
  readonly settings?: HubSettings | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: DownloadProgress) => void) | undefined;
  /** Sentences about repeated attempts. */
  readonly onNotice?: ((text: string) => void) | undefined;
}

export interface DownloadedRepository {
  /** Absolute. */
  readonly folder: string;
  readonly commit: string;
  readonly files: readonly RepositoryFile[];
  /** Bytes that came over the network in this run. */
  readonly transferredBytes: number;
}

/**
 * Brings files of a repository into a folder, several at once, each checked against the hub's size and hash. A run that
 * was stopped is continued by the next one with the same folder; files that are there and right are not fetched. Memory
 * does not depend on the sizes. Errors: those of `listRepository` and `downloadFile`, DOWNLOAD_LOCKED, HUB_OFFLINE,
 * CONFIG_INVALID.
 */
export async function downloadRepository(options: DownloadOptions): Promise<DownloadedRepository> {
  const { repository, revision, signal, onNotice } = options;
  const client = new HubClient(options.settings ?? (await readHubSettings()), options);
  const folder = resolve(options.into);
  const listing = await listRepository(client, repository, { revision, signal, onNotice });
  const files = (options.select ?? ((all) => all))(listing.files);
  checkNames(files);
  await mkdir(folder, { recursive: true }).catch(writingFailed(folder));
  const lock = lockFolder(folder);
  try {
    const record = await DownloadRecord.open(folder, pageOf(repository));
    if (options.prune === true) await prune(folder, record, files);
    const missing: RepositoryFile[] = [];
    for (const file of files) if (!(await isThere(folder, file, record, signal))) missing.push(file);
    await checkSpace(folder, missing, record, options.reserveBytes?.(files) ?? 0);
    const transferredBytes = await fetchAll({ ...options, client, listing, folder, files, missing, record });
    return { folder, commit: listing.commit, files, transferredBytes };
  } finally {
    lock.release();
  }
}

interface Fetching extends DownloadOptions {
  readonly client: HubClient;
  readonly listing: RepositoryListing;
  readonly folder: string;
  readonly files: readonly RepositoryFile[];
  readonly missing: readonly RepositoryFile[];
  readonly record: DownloadRecord;
}

async function fetchAll(fetching: Fetching): Promise<number> {
  const { client, listing, folder, files, missing, record, signal, onNotice, onProgress, concurrency = 4 } = fetching;
  const allTotalBytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
  let allBytes = allTotalBytes - missing.reduce((sum, { bytes }) => sum + bytes, 0);
  let finishedFiles = files.length - missing.length;
  let transferred = 0;
  const report = (path: string, bytes: number, totalBytes: number): void =>
    onProgress?.({ path, bytes, totalBytes, allBytes, allTotalBytes, finishedFiles, totalFiles: files.length });

  // The first failure ends the others; what they have brought is kept.
  const stop = new AbortController();
  const onAbort = (): void => stop.abort();
  if (signal?.aborted) throw cancelled();
  signal?.addEventListener('abort', onAbort, { once: true });
  const queue = [...missing];
  const failures: unknown[] = [];
  const worker = async (): Promise<void> => {
    for (let file = queue.shift(); file !== undefined && !stop.signal.aborted; file = queue.shift()) {
      const { path, bytes: totalBytes } = file;
      let there = 0;
      try {
        const came = await downloadFile({
          client,
          listing,
          file,
          target: join(folder, path),
          record,
          signal: stop.signal,
          onNotice,
          onBytes: (bytes) => {
            allBytes += bytes - there;
            there = bytes;
            report(path, bytes, totalBytes);
          },
        });
        // Added after the wait: other files end meanwhile.
        transferred += came;
        finishedFiles++;
        report(path, totalBytes, totalBytes);
      } catch (error) {
        failures.push(error);
        stop.abort();
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(concurrency, missing.length) }, worker));
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
  if (failures.length > 0) throw failures[0];
  if (signal?.aborted) throw cancelled();
  return transferred;
}

/** Whether the file is in its place and is the one that the hub has: known from an earlier run, or found by its hash. */
async function isThere(
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
  // Ours is replaced when the new one is whole. What somebody else put there is not.
  if (known !== undefined) return false;
  throw new TrawlError(
    'OUTPUT_NOT_WRITABLE',
    `${target} is there already and is not the file that the hub has. Remove it, or choose another folder.`,
  );
}

async function prune(folder: string, record: DownloadRecord, wanted: readonly RepositoryFile[]): Promise<void> {
  const keep = new Set(wanted.map(({ path }) => path));
  for (const path of record.paths().filter((known) => !keep.has(known))) {
    // The record is a file that anybody can have changed.
    if (path.split(/[/\\]/).includes('..')) continue;
    await rm(join(folder, path), { force: true });
    await rm(partialOf(join(folder, path)), { force: true });
    await record.forget(path);
  }
}

async function checkSpace(
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
    `${gigabytes(needed)} are needed in ${folder}, and ${gigabytes(free)} are free. Free space, or choose a folder on another disk.`,
    { details: { needed, free } },
  );
}

function gigabytes(bytes: number): string {
  return bytes < 1e8 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

/** Names that this folder's own files have. */
function checkNames(files: readonly RepositoryFile[]): void {
  const paths = new Set(files.map(({ path }) => path));
  for (const path of paths) {
    const clash = path.split('/').some((part) => part.startsWith(BOOKKEEPING)) || paths.has(partialOf(path));
    if (!clash) continue;
    throw new TrawlError(
      'HUB_REPLY_INVALID',
      `The repository's file ${JSON.stringify(basename(path))} has a name that downloads use themselves; leave it out.`,
    );
  }
}

function lockFolder(folder: string): FileLock {
  const lock = FileLock.acquire(join(folder, `${BOOKKEEPING}.lock`), 'exclusive');
  if (lock !== undefined) return lock;
  throw new TrawlError(
    'DOWNLOAD_LOCKED',
    `Another process is downloading into ${folder} at this moment. Wait for it or stop it; then run this again.`,
  );
}

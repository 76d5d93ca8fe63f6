import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { inParallel } from '../../src/base/in-parallel.ts';
import { downloadFile } from './download-file.ts';
import { checkFileNames, checkFreeSpace, isPresent, lockFolder, pruneFolder } from './download-folder.ts';
import { DownloadRecord } from './download-record.ts';
import { type ClientOptions, HubClient } from './hub-client.ts';
import { type HubSettings, readHubSettings } from './hub-settings.ts';
import { listRepository, pageOf, type Repository, type RepositoryFile, type RepositoryListing } from './repository.ts';
import { writingFailed } from './writing-failed.ts';

export interface DownloadProgress {
  /** The file that received bytes. */
  readonly path: string;
  readonly bytes: number;
  readonly totalBytes: number;
  /** Over all files, including what was present before this run. */
  readonly allBytes: number;
  readonly allTotalBytes: number;
  readonly finishedFiles: number;
  readonly totalFiles: number;
}

export interface DownloadOptions extends ClientOptions {
  readonly repository: Repository;
  /** Branch, tag or commit; default main. */
  readonly revision?: string;
  /** The folder for the files; created if it does not exist. */
  readonly into: string;
  /** Selects the files; default: all. May throw. */
  readonly select?: (files: readonly RepositoryFile[]) => readonly RepositoryFile[];
  /** Whether to remove files of an earlier run that are not selected now; default false. */
  readonly prune?: boolean;
  /** Free bytes needed in addition to the files. */
  readonly reserveBytes?: (files: readonly RepositoryFile[]) => number;
  /** Concurrent transfers; default 4. */
  readonly concurrency?: number;
  /** Default: from the environment. */
  readonly settings?: HubSettings;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: DownloadProgress) => void;
  /** Called with sentences about retries. */
  readonly onNotice?: (text: string) => void;
}

export interface DownloadedRepository {
  /** Absolute. */
  readonly folder: string;
  readonly commit: string;
  readonly files: readonly RepositoryFile[];
  /** Bytes transferred in this run. */
  readonly transferredBytes: number;
}

/**
 * Downloads files of a repository into a folder, several at once, and checks each against the hub's size and hash. Another
 * run with the same folder resumes an interrupted one and skips files that are present and correct. Memory does not depend
 * on the file sizes. Throws the errors of `listRepository` and `downloadFile`, DOWNLOAD_LOCKED, HUB_OFFLINE, CONFIG_INVALID.
 */
export async function downloadRepository(options: DownloadOptions): Promise<DownloadedRepository> {
  const { repository, revision, signal, onNotice } = options;
  const client = new HubClient(options.settings ?? (await readHubSettings()), options);
  const folder = resolve(options.into);
  const listing = await listRepository(client, repository, { revision, signal, onNotice });
  const files = (options.select ?? ((all) => all))(listing.files);
  checkFileNames(files);
  await mkdir(folder, { recursive: true }).catch(writingFailed(folder));
  const lock = lockFolder(folder);
  try {
    const record = await DownloadRecord.open(folder, pageOf(repository));
    if (options.prune === true) await pruneFolder(folder, record, files);
    const missing: RepositoryFile[] = [];
    for (const file of files) if (!(await isPresent(folder, file, record, signal))) missing.push(file);
    await checkFreeSpace(folder, missing, record, options.reserveBytes?.(files) ?? 0);
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

  const fetchOne = async (file: RepositoryFile, stop: AbortSignal): Promise<void> => {
    const { path, bytes: totalBytes } = file;
    let received = 0;
    const fileBytes = await downloadFile({
      client,
      listing,
      file,
      target: join(folder, path),
      record,
      signal: stop,
      onNotice,
      onBytes: (bytes) => {
        allBytes += bytes - received;
        received = bytes;
        report(path, bytes, totalBytes);
      },
    });
    // Not `transferred += await …`, which would lose the bytes of files that finish meanwhile.
    transferred += fileBytes;
    finishedFiles++;
    report(path, totalBytes, totalBytes);
  };
  // The partial files of transfers that a failure stops are kept.
  await inParallel(missing, concurrency, fetchOne, signal);
  throwIfCancelled(signal);
  return transferred;
}

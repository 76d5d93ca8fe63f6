import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { usablePartial } from './download-file.ts';
import { DownloadRecord } from './download-record.ts';
import type { DownloadOptions } from './download-repository.ts';
import { HubClient } from './hub-client.ts';
import { readHubSettings } from './hub-settings.ts';
import { listRepository, pageOf, type RepositoryFile } from './repository.ts';

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
export async function planDownload(
  options: Pick<
    DownloadOptions,
    'repository' | 'revision' | 'into' | 'select' | 'settings' | 'signal' | 'onNotice' | 'retry' | 'stallMs'
  >,
): Promise<DownloadPlan> {
  const { repository, revision, signal, onNotice } = options;
  const client = new HubClient(options.settings ?? (await readHubSettings()), options);
  const folder = resolve(options.into);
  const listing = await listRepository(client, repository, { revision, signal, onNotice });
  const files = (options.select ?? ((all) => all))(listing.files);
  const record = await DownloadRecord.open(folder, pageOf(repository));
  let missingBytes = 0;
  for (const file of files) {
    const target = join(folder, file.path);
    const isPresent = (await stat(target).catch(() => undefined))?.size === file.bytes;
    if (!isPresent) missingBytes += file.bytes - (await usablePartial(target, file, record));
  }
  return {
    folder,
    commit: listing.commit,
    files,
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    missingBytes,
  };
}

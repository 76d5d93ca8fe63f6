import { stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { isNodeError } from '../src/errors.ts';
import { usablePartial } from './download-file.ts';
import { DownloadRecord } from './download-record.ts';
import type { DownloadOptions } from './download-repository.ts';
import { HubClient } from './hub-client.ts';
import { readHubSettings } from './hub-settings.ts';
import { listRepository, pageOf, type RepositoryFile } from './repository.ts';

export interface DownloadPlan {
  /** Absolute. */
  readonly folder: string;
  /** What the revision names at this moment: a download of this commit brings these files. */
  readonly commit: string;
  readonly files: readonly RepositoryFile[];
  readonly bytes: number;
  /** What is not in the folder yet. */
  readonly missingBytes: number;
}

/**
 * What a download would bring, by the hub's list and a look at the folder; nothing is written. A file of the right length
 * counts as there: whether it is the right one is seen when it is downloaded. Errors: those of `listRepository`, those of
 * `select`, HUB_OFFLINE, CONFIG_INVALID, OUTPUT_NOT_WRITABLE for a folder of another repository.
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
    const there = (await stat(target).catch(() => undefined))?.size === file.bytes;
    if (!there) missingBytes += file.bytes - (await usablePartial(target, file, record));
  }
  return {
    folder,
    commit: listing.commit,
    files,
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    missingBytes,
  };
}

/** Bytes that may be written below a folder, which need not be there yet. */
export async function freeBytes(folder: string): Promise<number> {
  for (let place = resolve(folder); ; place = dirname(place)) {
    try {
      const { bavail, bsize } = await statfs(place);
      return bavail * bsize;
    } catch (error) {
      if (!isNodeError(error) || error.code !== 'ENOENT' || place === dirname(place)) throw error;
    }
  }
}

import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { inParallel } from '../../src/base/in-parallel.ts';
import type { RetryPolicy } from '../../src/base/net/retries.ts';
import { defined } from '../../src/base/objects.ts';
import type { IndexSnapshot } from '../../src/index/files/index-snapshot.ts';
import { fileProblem } from './check-file.ts';
import type { CopiesFolder } from './copies-folder.ts';
import { copyFile } from './copy-file.ts';
import { type CopySource, SOURCE_RETRIES } from './copy-source.ts';
import { linkFile } from './link-file.ts';
import type { CopyPlan } from './plan-copy.ts';
import { RateLimit } from './rate-limit.ts';

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
 * @throws TrawlError the errors of `copyFile`; what was copied is kept.
 */
export async function copyFiles(
  folder: CopiesFolder,
  source: CopySource,
  snapshot: IndexSnapshot,
  { files }: CopyPlan,
  options: CopyFilesOptions,
): Promise<number> {
  const name = folder.staging(snapshot.id);
  const staging = folder.folderOf(name);
  const journal = folder.journal(name);
  const rate = new RateLimit(options.bytesPerSecond);
  const retries = { ...SOURCE_RETRIES, ...defined(options.retry) };
  const totalBytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
  let doneBytes = 0;
  let transferred = 0;
  const copyOne = async ({ file, bytes, present }: CopyPlan['files'][number], signal: AbortSignal): Promise<void> => {
    let before = 0;
    const onBytes = (count: number): void => {
      doneBytes += count - before;
      before = count;
      options.onProgress({ file: file.path, doneBytes, totalBytes });
    };
    onBytes(0);
    const isLinked = typeof present === 'object' && (await linkFile(present.path, join(staging, file.path)));
    if (
      isLinked &&
      !(present.checked && !options.check) &&
      (await fileProblem(staging, file, snapshot, signal)) !== undefined
    ) {
      await rm(join(staging, file.path), { force: true });
    } else if (isLinked) {
      journal.checked(file);
    }
    if (!journal.isChecked(file)) {
      // Not `transferred += await`, which would add to the sum of before the transfer and lose that of other jobs.
      const count = await copyFile({
        source,
        snapshot,
        file,
        folder: staging,
        journal,
        rate,
        retries,
        signal,
        note: options.note,
        onBytes,
      });
      transferred += count;
    }
    onBytes(bytes);
  };
  await mkdir(staging, { recursive: true });
  await inParallel(files, options.jobs, copyOne, options.signal);
  return transferred;
}

import { existsSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import type { FileLock } from '../../src/base/system/file-lock.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { BUILD_FILE } from '../../src/index/manifest/build-records.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import type { Duplicates } from '../../src/index/passages/duplicate-ids.ts';
import { isShardFolder } from '../index-files.ts';
import { LOCK_FILES, lockBuild, removeWorkingFiles } from './build-lock.ts';
import { joinShards } from './join-shards.ts';
import { OutputFolder } from './output-folder.ts';

export interface MergeOptions {
  readonly overwrite: boolean;
  readonly uniqueIds: boolean;
  readonly signal?: AbortSignal;
}

export interface MergeSummary {
  readonly folder: string;
  readonly manifest: IndexManifest;
  /** False if the index was already complete. */
  readonly merged: boolean;
  readonly duplicates: Duplicates;
  readonly passagesWithoutId: number;
}

/**
 * Joins the shards that several jobs built into one index: the shards in `<out>.partial`, where jobs with that `--out` build them,
 * or the shards that the user moved into `<out>`. Only writes a manifest. Returns a complete index unchanged, because a scheduler
 * may run the last step twice.
 *
 * @throws TrawlError INDEX_NOT_FOUND without shards, BUILD_LOCKED while a job runs, INDEX_EXISTS without `overwrite`, and
 * the errors of `joinShards`. An error leaves the shards unchanged.
 */
export async function mergeIndex(out: string, options: MergeOptions): Promise<MergeSummary> {
  const final = resolve(out);
  const partial = `${final}.partial`;
  const hasPartial = existsSync(partial) && !(await removeIfEmpty(partial));
  if (hasPartial && existsSync(join(partial, BUILD_FILE))) {
    throw new TrawlError(
      'SHARDS_INCOMPLETE',
      `${partial} is an unfinished build of trawl index without --shard. Run that command again to finish it.`,
    );
  }
  if (!hasPartial && existsSync(join(final, INDEX_MANIFEST_FILE))) {
    const nothing = { merged: false, duplicates: { count: 0, examples: [] }, passagesWithoutId: 0 };
    return { folder: final, manifest: readIndexManifest(final), ...nothing };
  }
  if (!hasPartial && (!existsSync(final) || !readdirSync(final).some(isShardFolder))) {
    throw new TrawlError(
      'INDEX_NOT_FOUND',
      `No shards in ${partial} or ${final}. Build them with trawl index --shard i/n --out ${out}.`,
    );
  }
  const output = hasPartial ? await OutputFolder.prepare({ out, overwrite: options.overwrite }) : undefined;
  const lock = output ?? lockBuild(final, 'exclusive');
  try {
    const joined = await joinShards(output?.folder ?? final, options);
    if (output === undefined) removeWorkingFiles(final);
    else await output.publish();
    return { folder: final, merged: true, ...joined };
  } catch (error) {
    throw writeFailure(error, final);
  } finally {
    lock.release();
  }
}

/**
 * Removes the folder if it has only lock files and empty shards, as after jobs that were killed at their start. Returns
 * whether it was removed.
 *
 * @throws TrawlError BUILD_LOCKED while a job runs there.
 */
async function removeIfEmpty(partial: string): Promise<boolean> {
  const isEmpty = (name: string): boolean =>
    LOCK_FILES.includes(name) ||
    (isShardFolder(name) && readdirSync(join(partial, name)).every((file) => LOCK_FILES.includes(file)));
  let lock: FileLock | undefined;
  try {
    lock = lockBuild(partial, 'exclusive');
    if (!readdirSync(partial).every(isEmpty)) return false;
    await rm(partial, { recursive: true, force: true });
    return true;
  } catch (error) {
    throw writeFailure(error, partial);
  } finally {
    lock?.release();
  }
}

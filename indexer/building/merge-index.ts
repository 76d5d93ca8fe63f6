import { existsSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { BUILD_FILE } from '../../src/index/manifest/build-records.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import type { Duplicates } from '../../src/index/passages/duplicate-ids.ts';
import { BuildLock, LOCK_FILES, removeLockFiles } from './build-lock.ts';
import { joinShards } from './join-shards.ts';
import { OutputFolder } from './output-folder.ts';

export interface MergeOptions {
  /** Replace the index at `out`. */
  readonly overwrite: boolean;
  /** Reject shards with repeated ids. */
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
 * Joins the shards that several jobs built to one index: those in `<out>.partial`, where jobs with that `--out` build them,
 * or those that the user moved into `<out>`. Only writes a manifest. Returns a complete index unchanged, because a scheduler
 * may run the last step twice.
 *
 * @throws TrawlError INDEX_NOT_FOUND without shards, BUILD_LOCKED while a job runs, INDEX_EXISTS without `overwrite`, and
 * the errors of `joinShards`. An error leaves the shards unchanged.
 */
export async function mergeIndex(out: string, options: MergeOptions): Promise<MergeSummary> {
  const final = resolve(out);
  if (existsSync(`${final}.partial`) && !(await removeIfEmpty(`${final}.partial`))) return mergePartial(out, options);
  if (existsSync(join(final, INDEX_MANIFEST_FILE))) {
    const nothing = { merged: false, duplicates: { count: 0, examples: [] }, passagesWithoutId: 0 };
    return { folder: final, manifest: readIndexManifest(final), ...nothing };
  }
  if (!existsSync(final) || !readdirSync(final).some(isShardName)) {
    throw new TrawlError(
      'INDEX_NOT_FOUND',
      `No shards in ${final}.partial or ${final}. Build them with trawl index --shard i/n --out ${out}.`,
    );
  }
  const lock = BuildLock.acquire(final, 'exclusive');
  try {
    const joined = await joinShards(final, options);
    removeLockFiles(final);
    return { folder: final, merged: true, ...joined };
  } catch (error) {
    throw writeFailure(error, final);
  } finally {
    lock.release();
  }
}

async function mergePartial(out: string, options: MergeOptions): Promise<MergeSummary> {
  const partial = `${resolve(out)}.partial`;
  if (existsSync(join(partial, BUILD_FILE))) {
    throw new TrawlError(
      'SHARDS_INCOMPLETE',
      `${partial} is an unfinished build of trawl index without --shard. Run that command again to finish it.`,
    );
  }
  const output = await OutputFolder.prepare({ out, overwrite: options.overwrite });
  try {
    const joined = await joinShards(output.folder, options);
    await output.publish();
    return { folder: output.final, merged: true, ...joined };
  } catch (error) {
    throw writeFailure(error, output.final);
  } finally {
    output.release();
  }
}

/**
 * Removes the folder if it has only lock files and empty shards, as after jobs that were killed at their start. Returns
 * whether it was removed.
 *
 * @throws TrawlError BUILD_LOCKED while a job runs there.
 */
async function removeIfEmpty(partial: string): Promise<boolean> {
  let lock: BuildLock | undefined;
  try {
    lock = BuildLock.acquire(partial, 'exclusive');
    const names = readdirSync(partial);
    if (!names.every((name) => isEmpty(partial, name))) return false;
    await rm(partial, { recursive: true, force: true });
    return true;
  } catch (error) {
    throw writeFailure(error, partial);
  } finally {
    lock?.release();
  }
}

function isEmpty(partial: string, name: string): boolean {
  if (LOCK_FILES.includes(name)) return true;
  return isShardName(name) && readdirSync(join(partial, name)).every((file) => LOCK_FILES.includes(file));
}

function isShardName(name: string): boolean {
  return name.startsWith('shard-');
}

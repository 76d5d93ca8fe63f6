import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { TrawlError } from '../../src/errors.ts';
import { BUILD_FILE } from '../../src/manifest/build-records.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../../src/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/manifest/read-manifest.ts';
import type { Duplicates } from '../../src/passages/duplicate-ids.ts';
import { BuildLock, LOCK_FILES, removeLockFiles } from './build-lock.ts';
import { joinShards } from './join-shards.ts';
import { OutputFolder } from './output-folder.ts';
import { writeFailure } from '../write-failure.ts';

export interface MergeOptions {
  /** Replace an index at the path. */
  readonly overwrite: boolean;
  /** Refuse shards in which two passages have the same id. */
  readonly uniqueIds: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface MergeSummary {
  readonly folder: string;
  readonly manifest: IndexManifest;
  /** False where the index was there already and no shards wait. */
  readonly merged: boolean;
  readonly duplicates: Duplicates;
  readonly passagesWithoutId: number;
}

/**
 * Makes one index of shards that several jobs built: those in `<out>.partial`, where jobs with that `--out` put them, or
 * those that somebody has put into `<out>` itself. Only a manifest is written.
 *
 * @throws TrawlError INDEX_NOT_FOUND where there are no shards, BUILD_LOCKED while a job is at work, INDEX_EXISTS, and what
 * `joinShards` throws. The shards stay as they are then.
 */
export async function mergeIndex(out: string, options: MergeOptions): Promise<MergeSummary> {
  const final = resolve(out);
  if (hasWork(`${final}.partial`)) return mergePartial(out, options);
  if (existsSync(join(final, INDEX_MANIFEST_FILE))) {
    const nothing = { merged: false, duplicates: { count: 0, examples: [] }, passagesWithoutId: 0 };
    return { folder: final, manifest: readIndexManifest(final), ...nothing };
  }
  if (!existsSync(final) || !readdirSync(final).some((name) => name.startsWith('shard-'))) {
    throw new TrawlError(
      'INDEX_NOT_FOUND',
      `There are no shards in ${final}.partial or ${final}. Jobs make them with trawl index --shard i/n --out ${out}.`,
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

/** Not what a process that was killed before it began anything has left: a folder with nothing but its lock. */
function hasWork(partial: string): boolean {
  return existsSync(partial) && readdirSync(partial).some((name) => !LOCK_FILES.includes(name));
}

async function mergePartial(out: string, options: MergeOptions): Promise<MergeSummary> {
  const output = await OutputFolder.prepare(out, options.overwrite);
  try {
    if (existsSync(join(output.partial, BUILD_FILE))) {
      throw new TrawlError(
        'SHARDS_INCOMPLETE',
        `${output.partial}: is the build of one process, which joins its shards itself. Run its command again to finish it.`,
      );
    }
    const joined = await joinShards(output.partial, options);
    await output.publish();
    return { folder: output.final, merged: true, ...joined };
  } catch (error) {
    throw writeFailure(error, output.final);
  } finally {
    output.release();
  }
}

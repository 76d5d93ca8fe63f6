import { join } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { isSameJson } from '../../src/base/objects.ts';
import { writeJsonDurably } from '../../src/base/system/durable-file.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import {
  BUILD_FILE,
  BuildRecord,
  readRecord,
  UpdateRecord,
  type UpdateType,
} from '../../src/index/manifest/build-records.ts';
import { type IndexDirectory, openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import type { Build } from '../building/build.ts';
import { clearFolder, hasShards } from '../building/build-lock.ts';
import { buildDiffers, corpusDiffers, corpusFiles, readingDiffers, valuesDiffer } from '../building/build-settings.ts';
import { OutputFolder } from '../building/output-folder.ts';
import { moveShardsBack, removeLeftovers } from './publish-generation.ts';

export type UpdateBuild = Build & { readonly type: UpdateType };

/**
 * Changes an index at once, without a record that another run could resume.
 *
 * @throws TrawlError INDEX_NOT_FOUND; BUILD_LOCKED while another process changes the index; BUILD_DIFFERS if there is an unfinished
 * build or update, which must be finished first; errors of the index's files; the errors of `change`.
 */
export async function changeIndex<T>(
  index: string,
  change: (directory: IndexDirectory, output: OutputFolder) => Promise<T>,
): Promise<T> {
  const output = await OutputFolder.prepareChange(index);
  // An unfinished update of another run stays in the folder.
  let mayDiscard = false;
  try {
    const directory = openIndexDirectory(output.final);
    checkNoBuild(output);
    const begun = readRecord(UpdateRecord, join(output.folder, BUILD_FILE));
    if (begun != null && !wasPublished(output, begun, directory)) {
      throw buildDiffers(output.folder, [`it is an unfinished ${begun.kind} of the index`]);
    }
    mayDiscard = true;
    return await change(directory, output);
  } catch (error) {
    throw writeFailure(error, output.final);
  } finally {
    if (mayDiscard) await output.discard();
    else output.release();
  }
}

/** @throws TrawlError BUILD_DIFFERS if the folder has an unfinished build. */
export function checkNoBuild({ folder }: OutputFolder): void {
  const begun = readRecord(UpdateRecord, join(folder, BUILD_FILE));
  if (begun === null) {
    const isBuild = readRecord(BuildRecord, join(folder, BUILD_FILE)) !== null;
    throw buildDiffers(folder, [isBuild ? 'it is a build, not an update' : `its ${BUILD_FILE} cannot be read`]);
  }
  if (begun === undefined && hasShards(folder)) {
    throw buildDiffers(folder, ['its shards were built by jobs (--shard i/n)']);
  }
}

/**
 * Records the update in its folder, or accepts an unfinished one with the same settings, to be resumed. Moves back shards
 * that a killed process had moved into the index, and removes other leftovers.
 *
 * @throws TrawlError BUILD_DIFFERS.
 */
export async function claimUpdate(
  output: OutputFolder,
  directory: IndexDirectory,
  scan: CorpusScan,
  { type, reading, shardRows, restart }: UpdateBuild,
): Promise<void> {
  const path = join(output.folder, BUILD_FILE);
  const before = directory.manifest.generation;
  const corpus = corpusFiles(scan);
  const wanted: UpdateRecord = { format: 'trawl-update', version: 1, kind: type, before, reading, shardRows, corpus };
  const begun = restart ? undefined : (readRecord(UpdateRecord, path) ?? undefined);
  if (begun !== undefined && !wasPublished(output, begun, directory)) {
    const differences = [
      ...valuesDiffer('update or append', begun.kind, type),
      ...valuesDiffer('generation of the index', begun.before, before),
      ...readingDiffers(begun.reading, reading),
      ...valuesDiffer('maximum rows per shard', begun.shardRows, shardRows),
      ...corpusDiffers(begun.corpus, corpus),
    ];
    if (differences.length > 0) throw buildDiffers(output.folder, differences);
    if (!isSameJson(begun.reading, reading)) await writeJsonDurably(path, { ...begun, reading });
    await moveShardsBack(directory.folder, output.folder, directory.manifest);
    await removeLeftovers(directory.folder, directory.manifest);
  } else {
    // Before the update is recorded, because a resumed update uses unnamed shards as its own.
    await removeLeftovers(directory.folder, directory.manifest);
    await clearFolder(output.folder);
    await writeJsonDurably(path, wanted);
  }
}

/** Whether the update was published and only its cleanup is missing, so there is nothing to resume. */
function wasPublished({ folder }: OutputFolder, begun: UpdateRecord, { manifest }: IndexDirectory): boolean {
  return begun.before !== manifest.generation && !hasShards(folder);
}

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import type { TrawlError } from '../../src/base/errors.ts';
import { writeJsonDurably } from '../../src/base/system/durable-file.ts';
import {
  BUILD_FILE,
  BuildRecord,
  readRecord,
  UpdateRecord,
  type UpdateType,
} from '../../src/index/manifest/build-records.ts';
import type { IndexDirectory } from '../../src/search/opening/index-directory.ts';
import type { Build } from '../building/build.ts';
import { buildDiffers, corpusDiffers, corpusFiles, fieldsDiffer, valuesDiffer } from '../building/build-settings.ts';
import type { OutputFolder } from '../building/output-folder.ts';
import { moveShardsBack, removeLeftovers } from './publish-generation.ts';

/** A build of new shards for an update. */
export type WantedUpdate = Pick<Build, 'reading' | 'shardRows' | 'restart'> & { readonly type: UpdateType };

/** @throws TrawlError BUILD_DIFFERS if the folder has an unfinished build. */
export function checkNoBuild({ folder }: OutputFolder): void {
  const begun = readRecord(UpdateRecord, join(folder, BUILD_FILE));
  if (begun === null) {
    const isBuild = readRecord(BuildRecord, join(folder, BUILD_FILE)) !== null;
    throw otherWork(folder, isBuild ? 'it is a build, not an update' : `its ${BUILD_FILE} cannot be read`);
  }
  if (begun === undefined && hasShards(folder)) throw otherWork(folder, 'its shards were built by jobs (--shard i/n)');
}

/** @throws TrawlError BUILD_DIFFERS if the folder has an unfinished build or update, which must be finished first. */
export function checkNothingUnfinished(output: OutputFolder, directory: IndexDirectory): void {
  checkNoBuild(output);
  const begun = readRecord(UpdateRecord, join(output.folder, BUILD_FILE));
  if (begun == null || wasPublished(output, begun, directory)) return;
  throw buildDiffers(output.folder, [`it is an unfinished ${begun.kind} of the index`]);
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
  options: WantedUpdate,
): Promise<void> {
  const path = join(output.folder, BUILD_FILE);
  const wanted: UpdateRecord = {
    format: 'trawl-update',
    version: 1,
    kind: options.type,
    before: directory.manifest.generation,
    reading: options.reading,
    shardRows: options.shardRows,
    corpus: corpusFiles(scan),
  };
  const begun = options.restart ? undefined : (readRecord(UpdateRecord, path) ?? undefined);
  if (begun !== undefined && !wasPublished(output, begun, directory)) {
    const differences = updatesDiffer(begun, wanted);
    if (differences.length > 0) throw buildDiffers(output.folder, differences);
    await moveShardsBack(directory.folder, output.folder, directory.manifest);
    await removeLeftovers(directory.folder, directory.manifest);
  } else {
    // Before the update is recorded, because a resumed update uses unnamed shards as its own.
    await removeLeftovers(directory.folder, directory.manifest);
    await output.clear();
    await writeJsonDurably(path, wanted);
  }
}

/** Whether the update was published and only its cleanup is missing, so there is nothing to resume. */
function wasPublished({ folder }: OutputFolder, begun: UpdateRecord, { manifest }: IndexDirectory): boolean {
  return begun.before !== manifest.generation && !hasShards(folder);
}

function updatesDiffer(begun: UpdateRecord, wanted: UpdateRecord): string[] {
  return [
    ...valuesDiffer('update or append', begun.kind, wanted.kind),
    ...valuesDiffer('generation of the index', begun.before, wanted.before),
    ...fieldsDiffer('option', begun.reading, wanted.reading),
    ...valuesDiffer('maximum rows per shard', begun.shardRows, wanted.shardRows),
    ...corpusDiffers(begun.corpus, wanted.corpus),
  ];
}

function hasShards(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).some((name) => name.startsWith('shard-'));
}

function otherWork(folder: string, what: string): TrawlError {
  return buildDiffers(folder, [what]);
}

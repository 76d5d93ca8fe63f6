import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import type { TrawlError } from '../../src/errors.ts';
import {
  BUILD_FILE,
  BuildRecord,
  readRecord,
  type UpdateKind,
  UpdateRecord,
} from '../../src/manifest/build-records.ts';
import { writeJsonDurably } from '../../src/manifest/write-json.ts';
import type { IndexDirectory } from '../../src/retrieval/index-directory.ts';
import {
  buildDiffers,
  corpusDiffers,
  corpusFiles,
  fieldsDiffer,
  readingRecord,
  valuesDiffer,
} from '../build/build-settings.ts';
import type { OutputFolder } from '../build/output-folder.ts';
import { removeLeftovers, takeBack } from './publish-generation.ts';

export interface WantedUpdate {
  readonly kind: UpdateKind;
  readonly corpusOptions: CorpusOptions;
  readonly shardRows: number;
  /** Remove what was begun. */
  readonly restart?: boolean | undefined;
}

/** @throws TrawlError BUILD_DIFFERS where something else than an update was begun. */
export function checkNoBuild({ partial }: OutputFolder): void {
  const begun = readRecord(UpdateRecord, join(partial, BUILD_FILE));
  if (begun === null) {
    const isBuild = readRecord(BuildRecord, join(partial, BUILD_FILE)) !== null;
    throw otherWork(partial, isBuild ? 'it is a build, not an update' : `its ${BUILD_FILE} cannot be read`);
  }
  if (begun === undefined && hasShards(partial)) throw otherWork(partial, 'it has shards of jobs (--shard i/n)');
}

/** @throws TrawlError BUILD_DIFFERS where anything was begun and is to be gone on with first. */
export function checkNothingBegun(output: OutputFolder, directory: IndexDirectory): void {
  checkNoBuild(output);
  const begun = readRecord(UpdateRecord, join(output.partial, BUILD_FILE));
  if (begun == null || isOver(output, begun, directory)) return;
  throw buildDiffers(output.partial, [`it is an unfinished ${begun.kind} of the index`]);
}

/**
 * Notes that an update is made, or finds that it is the one that was begun. What updates left that ended in the middle is
 * put back or removed.
 *
 * @throws TrawlError BUILD_DIFFERS.
 */
export async function claimUpdate(
  output: OutputFolder,
  directory: IndexDirectory,
  scan: CorpusScan,
  options: WantedUpdate,
): Promise<void> {
  const path = join(output.partial, BUILD_FILE);
  const wanted: UpdateRecord = {
    format: 'trawl-update',
    version: 1,
    kind: options.kind,
    before: directory.manifest.generation,
    reading: readingRecord(options.corpusOptions),
    shardRows: options.shardRows,
    corpus: corpusFiles(scan),
  };
  const begun = options.restart === true ? undefined : (readRecord(UpdateRecord, path) ?? undefined);
  if (begun !== undefined && !isOver(output, begun, directory)) {
    const differences = updatesDiffer(begun, wanted);
    if (differences.length > 0) throw buildDiffers(output.partial, differences);
    await takeBack(directory.folder, output.partial, directory.manifest);
    await removeLeftovers(directory.folder, directory.manifest);
  } else {
    // Before there is a note of this update: who goes on with it takes unnamed shards for its own.
    await removeLeftovers(directory.folder, directory.manifest);
    await output.clear();
    await writeJsonDurably(path, wanted);
  }
}

/** It took the index's place and ended before it cleared up: there is nothing to go on with. */
function isOver({ partial }: OutputFolder, begun: UpdateRecord, { manifest }: IndexDirectory): boolean {
  return begun.before !== manifest.generation && !hasShards(partial);
}

function updatesDiffer(begun: UpdateRecord, wanted: UpdateRecord): string[] {
  return [
    ...valuesDiffer('kind', begun.kind, wanted.kind),
    ...valuesDiffer('generation of the index', begun.before, wanted.before),
    ...fieldsDiffer('option', begun.reading, wanted.reading),
    ...valuesDiffer('most rows of a shard', begun.shardRows, wanted.shardRows),
    ...corpusDiffers(begun.corpus, wanted.corpus),
  ];
}

function hasShards(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).some((name) => name.startsWith('shard-'));
}

function otherWork(folder: string, what: string): TrawlError {
  return buildDiffers(folder, [what]);
}

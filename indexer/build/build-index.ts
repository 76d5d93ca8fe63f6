import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { BUILD_FILE } from '../../src/manifest/build-records.ts';
import type { IndexManifest } from '../../src/manifest/index-manifest.ts';
import { readShardManifest } from '../../src/manifest/read-manifest.ts';
import { SHARD_MANIFEST_FILE } from '../../src/manifest/shard-manifest.ts';
import { type Duplicates, duplicateIds } from '../../src/passages/duplicate-ids.ts';
import { beginBuild, modelLocation } from './begin-build.ts';
import { failedBuild } from './build-failure.ts';
import type { BuildOptions, WorkSummary } from './build-options.ts';
import { buildDiffers, buildRecord, claimFolder } from './build-settings.ts';
import { checkInputsOutside } from './check-inputs.ts';
import { checkVectors } from '../vectors/check-vectors.ts';
import { checkRoom, checkRoomForVectors } from '../disk-room.ts';
import { checkRows } from '../vectors/given-vectors.ts';
import { PASSAGES_FILE, shardFolderName } from '../index-files.ts';
import { emptyCorpus, joinShards, repeatedIds } from './join-shards.ts';
import { OutputFolder } from './output-folder.ts';
import { cutPositions, DEFAULT_SHARD_ROWS, shardCount } from './shard-cut.ts';
import { type ShardPlace, storedPassages } from './store-passages.ts';

export interface BuildSummary extends WorkSummary {
  readonly manifest: IndexManifest;
  readonly duplicates: Duplicates;
}

/**
 * Corpus → index directory. Nothing is visible at `out` before all of it is written. A build that was stopped or killed
 * is gone on with where it was, and gives the index that an undisturbed one gives.
 *
 * @throws TrawlError BUILD_DIFFERS when another build was begun there, BUILD_LOCKED while another process is at work
 * there; INDEX_EXISTS, DISK_FULL, OUTPUT_NOT_WRITABLE; errors of corpus, template and encoder.
 */
export async function buildIndex(options: BuildOptions): Promise<BuildSummary> {
  const begun = beginBuild(options);
  checkInputsOutside(options);
  const output = await OutputFolder.prepare(options.out, options.overwrite);
  try {
    const scan = await begun.scan();
    const shards = scan === undefined ? 1 : shardCount(scan.positions, options.shardRows ?? DEFAULT_SHARD_ROWS);
    const record = buildRecord({ ...options, model: options.encoder.identity, shards, scan });
    const { vectors } = options;
    // A corpus of fewer lines than vectors needs no reading to be the wrong one.
    if (vectors !== undefined && scan !== undefined && scan.positions < vectors.set.rows)
      checkRows(vectors, scan.positions, 'the corpus has at most');
    if (!existsSync(join(output.partial, BUILD_FILE)) && existsSync(join(output.partial, shardFolderName(0)))) {
      if (options.restart !== true) throw buildDiffers(output.partial, ['it has shards of jobs (--shard i/n)']);
    }
    await claimFolder(output.partial, record, { restart: options.restart ?? false, clear: () => output.clear() });
    const places = cutPositions(scan?.positions ?? 0, shards).map(
      (range): ShardPlace => ({
        ...range,
        ...(scan === undefined ? { end: Number.POSITIVE_INFINITY } : {}),
        folder: join(output.partial, shardFolderName(range.index)),
      }),
    );
    const open = places.filter(({ folder }) => !existsSync(join(folder, SHARD_MANIFEST_FILE)));
    const done = places.filter((place) => !open.includes(place)).map(({ folder }) => readShardManifest(folder));
    await checkRoom(output, options, scan, open);
    const corpus = await begun.read(open, scan);
    const stored = open.map(({ folder }) => storedPassages(folder)!);
    const rowsDone = done.reduce((sum, { rows }) => sum + rows, 0);
    const rows = stored.reduce((sum, shard) => sum + shard.rows, rowsDone);
    if (rows === 0) throw emptyCorpus();
    const firstRows = new Map<number, number>();
    let before = 0;
    for (const { index, folder } of places) {
      firstRows.set(index, before);
      before += (storedPassages(folder) ?? readShardManifest(folder)).rows;
    }
    // Before anything is embedded, which may take days.
    if (options.uniqueIds) {
      const duplicates = duplicateIds(
        places.map(({ folder }) => join(folder, PASSAGES_FILE)),
        options,
      );
      if (duplicates.count > 0) throw repeatedIds(duplicates);
    }
    if (vectors !== undefined) {
      checkRows(vectors, rows);
      await checkVectors(vectors, places, firstRows, options);
    }
    await checkRoomForVectors(output, options, open, rows - rowsDone);
    const built = await begun.encode(open, { scan, corpus, rows, rowsDone, shards, firstRows });
    begun.times.start('finish');
    options.onProgress({ stage: 'finish', passages: rows, totalPassages: rows });
    const { manifest, duplicates, passagesWithoutId } = await joinShards(output.partial, {
      ...options,
      modelLocation: modelLocation(options),
    });
    await output.publish();
    begun.times.stop();
    return {
      folder: output.final,
      manifest,
      duplicates,
      tokens: built.reduce((sum, { tokens }) => sum + tokens, 0),
      resumedRows: built.reduce((sum, { resumedRows }) => sum + resumedRows, rowsDone),
      skippedExamples: stored.flatMap(({ skippedExamples }) => skippedExamples).slice(0, 10),
      passagesWithoutId,
      stageMs: begun.times.stages,
    };
  } catch (error) {
    throw await failedBuild(error, {
      folder: output.partial,
      final: output.final,
      keep: () => output.release(),
      discard: () => output.discard(),
    });
  }
}

import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { cutSegments } from '../../embeddings/embedding-set.ts';
import { TrawlError } from '../../src/errors.ts';
import { BUILD_FILE } from '../../src/manifest/build-records.ts';
import { readShardManifest } from '../../src/manifest/read-manifest.ts';
import { SHARD_MANIFEST_FILE, type ShardManifest } from '../../src/manifest/shard-manifest.ts';
import { duplicateIds } from '../../src/passages/duplicate-ids.ts';
import { beginBuild, filesOf } from './begin-build.ts';
import { failedBuild } from './build-failure.ts';
import { BuildLock, removeLockFiles } from './build-lock.ts';
import type { BuildOptions, WorkSummary } from './build-options.ts';
import {
  buildDiffers,
  buildRecord,
  claimFolder,
  corpusDiffers,
  fieldsDiffer,
  readingRecord,
  valuesDiffer,
  vectorsDiffer,
} from './build-settings.ts';
import { checkInputsOutside } from './check-inputs.ts';
import { checkVectors } from '../vectors/check-vectors.ts';
import { checkRoom, checkRoomForVectors } from '../disk-room.ts';
import { type GivenVectors, vectorsInput } from '../vectors/given-vectors.ts';
import { PASSAGES_FILE, shardFolderName } from '../index-files.ts';
import { repeatedIds } from './join-shards.ts';
import { OutputFolder } from './output-folder.ts';
import { cutPositions } from './shard-cut.ts';
import { type ShardPlace, storedPassages } from './store-passages.ts';

export interface JobSummary extends WorkSummary {
  readonly manifest: ShardManifest;
  /** The shard was complete before. */
  readonly wasComplete: boolean;
  /** Shards of the index that are complete in this folder, and how many there are to be. */
  readonly complete: number;
  readonly shards: number;
}

/**
 * One shard of an index that several jobs build: each reads the whole corpus for its checksum, and takes its part of it.
 * `joinShards` makes the index of them.
 *
 * @throws as `buildIndex`.
 */
export async function buildShardJob(
  options: BuildOptions & { readonly shard: { readonly index: number; readonly of: number } },
): Promise<JobSummary> {
  const { index, of } = options.shard;
  const begun = beginBuild(options);
  checkInputsOutside(options);
  const output = await OutputFolder.prepare(options.out, options.overwrite, 'shared');
  const folder = join(output.partial, shardFolderName(index));
  let lock: BuildLock | undefined;
  const release = (): void => {
    lock?.release();
    output.release();
  };
  try {
    if (existsSync(join(output.partial, BUILD_FILE))) {
      throw buildDiffers(output.partial, ['it is the build of one process, without --shard']);
    }
    await mkdir(folder, { recursive: true });
    lock = BuildLock.acquire(folder, 'exclusive');
    const scan = await begun.scan();
    if (scan === undefined) {
      throw new TrawlError(
        'USAGE',
        'A corpus that comes through a pipe cannot be cut into shards. Write it to a file.',
      );
    }
    const { vectors } = options;
    if (vectors !== undefined) checkEveryLine(vectors, scan.positions);
    const place: ShardPlace = { ...cutPositions(scan.positions, of)[index]!, folder };
    const complete = (): number =>
      Array.from({ length: of }, (_, i) => join(output.partial, shardFolderName(i), SHARD_MANIFEST_FILE)).filter(
        (file) => existsSync(file),
      ).length;
    const clear = async (): Promise<void> => {
      lock?.release();
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder);
      lock = BuildLock.acquire(folder, 'exclusive');
    };
    if (existsSync(join(folder, SHARD_MANIFEST_FILE)) && options.restart !== true) {
      const manifest = readShardManifest(folder);
      const differences = shardDiffers(manifest, options, scan, place, of);
      if (differences.length > 0) throw buildDiffers(folder, differences);
      await finishJobFolder(folder);
      release();
      const nothing = { tokens: 0, resumedRows: manifest.rows, skippedExamples: [], passagesWithoutId: 0 };
      return {
        folder,
        manifest,
        wasComplete: true,
        complete: complete(),
        shards: of,
        stageMs: begun.times.stages,
        ...nothing,
      };
    }
    const record = buildRecord({ ...options, model: options.encoder.identity, shards: of, scan });
    await claimFolder(folder, record, { restart: options.restart ?? false, clear });
    await checkRoom(output, options, scan, [place]);
    const corpus = await begun.read([place], scan);
    const stored = storedPassages(folder)!;
    if (options.uniqueIds) {
      const duplicates = duplicateIds([join(folder, PASSAGES_FILE)], options);
      if (duplicates.count > 0) throw repeatedIds(duplicates);
    }
    const firstRows = new Map([[index, place.first]]);
    if (vectors !== undefined) {
      const left = place.end - place.first - stored.rows;
      checkEveryLine(vectors, scan.positions - left);
      await checkVectors(partOf(vectors, place), [place], new Map([[index, 0]]), options);
    }
    await checkRoomForVectors(output, options, [place], stored.rows);
    const [built] = await begun.encode([place], {
      scan,
      corpus,
      rows: stored.rows,
      rowsDone: 0,
      shards: of,
      isJob: true,
      firstRows,
    });
    await finishJobFolder(folder);
    begun.times.stop();
    release();
    return {
      folder,
      manifest: built!.manifest,
      wasComplete: false,
      complete: complete(),
      shards: of,
      tokens: built!.tokens,
      resumedRows: built!.resumedRows,
      skippedExamples: stored.skippedExamples,
      passagesWithoutId: stored.rowsWithoutId,
      stageMs: begun.times.stages,
    };
  } catch (error) {
    throw await failedBuild(error, {
      folder,
      final: output.final,
      keep: release,
      discard: async () => {
        if (lock !== undefined) await rm(folder, { recursive: true, force: true });
        lock?.release();
        await output.discardIfEmpty();
      },
    });
  }
}

/** A job sees its own passages alone: which vector is its first is known only where every line is a passage. */
function checkEveryLine(vectors: GivenVectors, lines: number): void {
  if (vectors.set.rows === lines) return;
  throw new TrawlError(
    'VECTORS_MISMATCH',
    `${vectors.set.rows} vectors for ${lines} lines of the corpus: a job can take its part of the vectors only where every ` +
      'line is a passage (no header, no blank line, none left out). Where those are the difference, leave out --shard; ' +
      'otherwise name the corpus that the vectors were made from.',
  );
}

function partOf(vectors: GivenVectors, { first, end }: ShardPlace): GivenVectors {
  const { set } = vectors;
  const segments = cutSegments(set, first, end - first);
  return { ...vectors, set: { ...set, segments, rows: end - first, ids: set.ids?.slice(first, end) } };
}

async function finishJobFolder(folder: string): Promise<void> {
  await rm(join(folder, BUILD_FILE), { force: true });
  removeLockFiles(folder);
}

function shardDiffers(
  shard: ShardManifest,
  { encoder, passageTemplate, corpusOptions, vectors }: BuildOptions,
  scan: CorpusScan,
  { first, end }: ShardPlace,
  shards: number,
): string[] {
  const input = { first, end, positions: scan.positions, shards };
  const { reading, vectors: taken, modelLocation: _, ...found } = shard.input ?? { reading: {} };
  return [
    ...fieldsDiffer('model', shard.model, encoder.identity),
    ...valuesDiffer('passage template', shard.corpus.passageTemplate, passageTemplate),
    ...fieldsDiffer('option', reading, readingRecord(corpusOptions)),
    ...vectorsDiffer(taken, vectors && vectorsInput(vectors)),
    ...corpusDiffers(shard.corpus.files, filesOf(scan)),
    ...fieldsDiffer('part', found, input),
  ];
}

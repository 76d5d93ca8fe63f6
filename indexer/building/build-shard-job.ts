import { join } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { checkSpaceForPassages, checkSpaceForVectors } from '../expected-size.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import { lacksTitles, noTitlesInShard } from '../lexical/check-titles.ts';
import { cutSegments } from '../vector-files/vector-file-set.ts';
import { checkVectors } from '../vectors/check-vectors.ts';
import { type PrecomputedVectors, vectorsInput } from '../vectors/precomputed-vectors.ts';
import { Build, type BuildOptions, scanFiles, type WorkSummary } from './build.ts';
import {
  buildDiffers,
  buildRecord,
  claimFolder,
  fieldsDiffer,
  settingsDiffer,
  settingsOfShard,
} from './build-settings.ts';
import { buildShards } from './build-shards.ts';
import { JobFolder } from './job-folder.ts';
import { checkedDuplicates } from './join-shards.ts';
import { keepOnFailure } from './keep-on-failure.ts';
import {
  cutPositions,
  isComplete,
  type PlannedShard,
  type ShardInput,
  type StoredShard,
  shardInput,
  storedPassages,
} from './planned-shard.ts';
import { type CorpusFileRecord, fileRecords, storePassages } from './store-passages.ts';

export interface JobSummary extends WorkSummary {
  readonly manifest: ShardManifest;
  /** Whether the shard was already complete. */
  readonly wasComplete: boolean;
  /** Complete shards of the index in its folder on this machine. */
  readonly complete: number;
  /** Number of shards of the index. */
  readonly shards: number;
}

/**
 * Builds one shard of an index that several jobs build. Each job reads the whole corpus for its checksum and stores its own
 * part. `joinShards` then joins the shards to an index.
 *
 * @throws TrawlError as `buildIndex`.
 */
export async function buildShardJob(
  options: BuildOptions & { readonly shard: { readonly index: number; readonly of: number } },
): Promise<JobSummary> {
  const { index, of: shards } = options.shard;
  const build = new Build(options);
  const job = await JobFolder.prepare(build, options.shard);
  return keepOnFailure(job, async () => {
    const scan = await scanFiles(build);
    if (scan === undefined) throw pipedCorpus();
    if (build.vectors !== undefined) checkEveryLine(build.vectors, scan.positions);
    const place: PlannedShard = { ...cutPositions(scan.positions, shards)[index]!, folder: job.folder };
    const input = shardInput(build, scan, place, shards);
    // Shards with different vector files must not be joined.
    if (build.vectors !== undefined) input.vectors = vectorsInput(build.vectors);
    if (isComplete(place) && !build.restart) {
      const manifest = readShardManifest(job.folder);
      checkSameShard(job.folder, manifest, build, { files: fileRecords(scan), input });
      await job.finish();
      return {
        ...NOTHING_DONE,
        ...progressOf(job, shards),
        manifest,
        resumedRows: manifest.rows,
        stageMs: build.clock.stop(),
      };
    }
    await claimFolder(job, buildRecord(build, shards, scan), build.restart);
    await checkSpaceForPassages(job, build, scan, [place]);
    const corpusFiles = await storePassages(build, [place], scan);
    const { rows, skippedExamples, rowsWithoutId } = storedPassages(job.folder)!;
    const shard: StoredShard = { ...place, rows, firstRow: place.first, input };
    await checkPassages(build, shard, scan);
    await checkSpaceForVectors(job, build, [shard]);
    const { manifests, tokens, resumedRows } = await buildShards(build, [shard], {
      corpusFiles,
      rows,
      rowsDone: 0,
      shards,
    });
    await job.finish();
    return {
      ...progressOf(job, shards),
      manifest: manifests[0]!,
      wasComplete: false,
      tokens,
      resumedRows,
      skippedExamples,
      passagesWithoutId: rowsWithoutId,
      stageMs: build.clock.stop(),
    };
  });
}

const NOTHING_DONE = { wasComplete: true, tokens: 0, skippedExamples: [], passagesWithoutId: 0 } as const;

function progressOf(job: JobFolder, shards: number): Pick<JobSummary, 'folder' | 'complete' | 'shards'> {
  return { folder: job.folder, complete: job.countComplete(), shards };
}

function pipedCorpus(): TrawlError {
  return new TrawlError('USAGE', 'A corpus from a pipe cannot be divided into shards. Write it to a file.');
}

/** Checks the stored passages before embedding, which may take days. */
async function checkPassages(build: Build, shard: StoredShard, scan: CorpusScan): Promise<void> {
  const { vectors, signal } = build;
  const files = [join(shard.folder, PASSAGES_FILE)];
  if (lacksTitles(build.bm25, files, signal)) build.onNote(noTitlesInShard(shard.folder));
  if (build.uniqueIds) checkedDuplicates(files, build);
  if (vectors === undefined) return;
  const linesWithoutPassage = shard.end - shard.first - shard.rows;
  checkEveryLine(vectors, scan.positions - linesWithoutPassage);
  await checkVectors(partOf(vectors, shard), [{ ...shard, firstRow: 0 }], build);
}

/** A job knows only its own passages. It can find its first vector only if every line of the corpus is a passage. */
function checkEveryLine(vectors: PrecomputedVectors, lines: number): void {
  if (vectors.set.rows === lines) return;
  throw new TrawlError(
    'VECTORS_MISMATCH',
    `${vectors.set.rows} vectors for ${lines} lines of the corpus. With --shard, every line must be a passage (no header, ` +
      'blank or skipped lines). If the corpus has such lines, leave out --shard; otherwise name the corpus that the vectors ' +
      'were made from.',
  );
}

function partOf(vectors: PrecomputedVectors, { first, end }: PlannedShard): PrecomputedVectors {
  const { set } = vectors;
  const segments = cutSegments(set, first, end - first);
  return { ...vectors, set: { ...set, segments, rows: end - first, ids: set.ids?.slice(first, end) } };
}

/** @throws TrawlError BUILD_DIFFERS if the complete shard was built with other settings. */
function checkSameShard(
  folder: string,
  shard: ShardManifest,
  { space, passageTemplate, bm25, columns }: Build,
  { files, input }: { readonly files: readonly CorpusFileRecord[]; readonly input: ShardInput },
): void {
  const wanted = settingsOfShard({
    model: space?.model ?? null,
    corpus: { files, passageTemplate },
    bm25: bm25 && { made: bm25 },
    columns,
    input,
  });
  const part = (of: ShardInput | undefined): object => ({ first: of?.first, end: of?.end });
  const differences = [
    ...settingsDiffer(settingsOfShard(shard), wanted),
    ...fieldsDiffer('part', part(shard.input), part(input)),
  ];
  if (differences.length > 0) throw buildDiffers(folder, differences);
}

import { join } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { duplicateIds } from '../../src/index/passages/duplicate-ids.ts';
import { checkSpaceForPassages, checkSpaceForVectors } from '../disk-space.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import { lacksTitles, noTitlesInShard } from '../lexical/check-titles.ts';
import { cutSegments } from '../vector-files/vector-file-set.ts';
import { checkVectors } from '../vectors/check-vectors.ts';
import { type PrecomputedVectors, vectorsInput } from '../vectors/precomputed-vectors.ts';
import type { BuildOptions, WorkSummary } from './build-options.ts';
import { BuildRun, fileRecords, shardInput } from './build-run.ts';
import {
  bm25Differs,
  buildDiffers,
  buildRecord,
  claimFolder,
  columnsDiffer,
  corpusDiffers,
  fieldsDiffer,
  modelDiffers,
  readingRecord,
  valuesDiffer,
  vectorsDiffer,
} from './build-settings.ts';
import { checkInputsOutside } from './check-inputs.ts';
import { JobFolder } from './job-folder.ts';
import { repeatedIds } from './join-shards.ts';
import { keepOnFailure } from './keep-on-failure.ts';
import { isComplete, type PlannedShard, type StoredShard, storedPassages } from './planned-shard.ts';
import { cutPositions } from './shard-cut.ts';

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
  const run = new BuildRun(options);
  checkInputsOutside(options);
  const job = await JobFolder.prepare(options.out, options.overwrite, options.shard);
  return keepOnFailure(job, async () => {
    const scan = await run.scan();
    if (scan === undefined) throw pipedCorpus();
    if (options.vectors !== undefined) checkEveryLine(options.vectors, scan.positions);
    const place: PlannedShard = { ...cutPositions(scan.positions, shards)[index]!, folder: job.folder };
    if (isComplete(place) && options.restart !== true) {
      const manifest = readShardManifest(job.folder);
      checkSameShard(manifest, options, scan, place, shards);
      await job.finish();
      return {
        ...NOTHING_DONE,
        ...progressOf(job, shards),
        manifest,
        resumedRows: manifest.rows,
        stageMs: run.clock.stop(),
      };
    }
    const record = buildRecord({ ...options, model: options.encoder?.identity ?? null, shards, scan });
    await claimFolder(job, record, options.restart ?? false);
    await checkSpaceForPassages(job, options, scan, [place]);
    const corpusFiles = await run.storePassages([place], scan);
    const { rows, skippedExamples, rowsWithoutId } = storedPassages(job.folder)!;
    const shard: StoredShard = { ...place, rows, firstRow: place.first };
    await checkPassages(shard, options, scan);
    await checkSpaceForVectors(job, options, [shard]);
    const input = jobInput(options, scan, place, shards);
    const [built] = await run.makeVectors([{ ...shard, input }], { corpusFiles, rows, rowsDone: 0, shards });
    const { manifest, tokens, resumedRows } = built!;
    await job.finish();
    const passagesWithoutId = rowsWithoutId;
    return {
      ...progressOf(job, shards),
      manifest,
      wasComplete: false,
      tokens,
      resumedRows,
      skippedExamples,
      passagesWithoutId,
      stageMs: run.clock.stop(),
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

/** As `shardInput`, with the vector files, because shards with different vector files must not be joined. */
function jobInput(
  options: BuildOptions,
  scan: CorpusScan,
  place: PlannedShard,
  shards: number,
): NonNullable<ShardManifest['input']> {
  const { vectors } = options;
  return {
    ...shardInput(options, scan, place, shards),
    vectors: vectors === undefined ? undefined : vectorsInput(vectors),
  };
}

/** Checks the stored passages before embedding, which may take days. */
async function checkPassages(shard: StoredShard, options: BuildOptions, scan: CorpusScan): Promise<void> {
  const { uniqueIds, vectors, bm25, onNote, signal } = options;
  const files = [join(shard.folder, PASSAGES_FILE)];
  if (lacksTitles(bm25, files, signal)) onNote?.(noTitlesInShard(shard.folder));
  if (uniqueIds) {
    const duplicates = duplicateIds(files, options);
    if (duplicates.count > 0) throw repeatedIds(duplicates);
  }
  if (vectors === undefined) return;
  const linesWithoutPassage = shard.end - shard.first - shard.rows;
  checkEveryLine(vectors, scan.positions - linesWithoutPassage);
  await checkVectors(partOf(vectors, shard), [{ ...shard, firstRow: 0 }], options);
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
  shard: ShardManifest,
  { encoder, bm25, columns, passageTemplate, corpusOptions, vectors }: BuildOptions,
  scan: CorpusScan,
  { first, end, folder }: PlannedShard,
  shards: number,
): void {
  const input = { first, end, positions: scan.positions, shards };
  const { reading, vectors: usedVectors, modelLocation: _, ...found } = shard.input ?? { reading: {} };
  const differences = [
    ...modelDiffers(shard.model, encoder?.identity ?? null),
    ...bm25Differs(shard.bm25?.made, bm25),
    ...columnsDiffer(shard.columns, columns),
    ...valuesDiffer('passage template', shard.corpus.passageTemplate, passageTemplate),
    ...fieldsDiffer('option', reading, readingRecord(corpusOptions)),
    ...vectorsDiffer(usedVectors, vectors && vectorsInput(vectors)),
    ...corpusDiffers(shard.corpus.files, fileRecords(scan)),
    ...fieldsDiffer('part', found, input),
  ];
  if (differences.length > 0) throw buildDiffers(folder, differences);
}

import { existsSync, statSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { basename, join, relative, resolve } from 'node:path';
import { listCorpusFiles } from '../corpus/list-corpus-files.ts';
import type { Corpus, CorpusOptions } from '../corpus/open-corpus.ts';
import { parseTemplate } from '../corpus/passage-template.ts';
import { type CorpusScan, scanCorpus } from '../corpus/scan-corpus.ts';
import type { TextEncoder } from '../src/embedding/text-encoder.ts';
import { TrawlError } from '../src/errors.ts';
import { BUILD_FILE } from '../src/manifest/build-records.ts';
import type { IndexManifest } from '../src/manifest/index-manifest.ts';
import { readShardManifest } from '../src/manifest/read-manifest.ts';
import { SHARD_MANIFEST_FILE, type ShardManifest } from '../src/manifest/shard-manifest.ts';
import { type Duplicates, duplicateIds } from '../src/passages/duplicate-ids.ts';
import type { Kernel } from '../src/vector-index/kernel.ts';
import type { OnProgress } from './build-events.ts';
import { failedBuild } from './build-failure.ts';
import { BuildLock, removeLockFiles } from './build-lock.ts';
import {
  buildDiffers,
  buildRecord,
  claimFolder,
  corpusDiffers,
  fieldsDiffer,
  readingRecord,
  valuesDiffer,
} from './build-settings.ts';
import { type BuiltShard, buildShard, DEFAULT_CHECKPOINT_MS, type ShardContext } from './build-shard.ts';
import { checkRoom, checkRoomForVectors } from './disk-room.ts';
import { PASSAGES_FILE, shardFolderName } from './index-files.ts';
import { emptyCorpus, joinShards, repeatedIds } from './join-shards.ts';
import { OutputFolder } from './output-folder.ts';
import { cutPositions, DEFAULT_SHARD_ROWS, shardCount } from './shard-cut.ts';
import { type ShardPlace, storedPassages, storePassages } from './store-passages.ts';

export interface BuildOptions {
  /** Files and directories, in order. */
  readonly corpus: readonly string[];
  readonly corpusOptions: CorpusOptions;
  readonly encoder: TextEncoder;
  /** Folder of the encoder's model where it was given as a path, for who opens the index. */
  readonly modelFolder?: string | undefined;
  /** The engine that makes the first-pass codes; without it the index has none. */
  readonly kernel?: Kernel | undefined;
  /** Folder of the index. */
  readonly out: string;
  /** Replace an index at `out`. */
  readonly overwrite: boolean;
  /** Remove what a build that was stopped has done, in place of going on with it. Default false. */
  readonly restart?: boolean | undefined;
  /** How the text to embed is made of a row's columns (corpus/passage-template.ts). */
  readonly passageTemplate: string;
  /** Refuse a corpus in which two passages have the same id. */
  readonly uniqueIds: boolean;
  /** Most rows of a shard. Default a million. */
  readonly shardRows?: number | undefined;
  /** Milliseconds between checkpoints: what a killed build does again. Default 5,000; 0: after every batch. */
  readonly checkpointMs?: number | undefined;
  readonly onProgress: OnProgress;
  readonly onNote?: ((text: string) => void) | undefined;
  /** Ends the build with CANCELLED after the batch in hand; what is done is kept. */
  readonly signal?: AbortSignal | undefined;
}

/** Milliseconds of this process, per stage. */
export interface StageTimes {
  readonly scan: number;
  readonly read: number;
  readonly encode: number;
  readonly finish: number;
}

interface Summary {
  readonly folder: string;
  /** Embedded by this process. */
  readonly tokens: number;
  /** Rows that had vectors from earlier runs of the same build. */
  readonly resumedRows: number;
  readonly skippedExamples: readonly string[];
  readonly passagesWithoutId: number;
  readonly stageMs: StageTimes;
}

export interface BuildSummary extends Summary {
  readonly manifest: IndexManifest;
  readonly duplicates: Duplicates;
}

export interface JobSummary extends Summary {
  readonly manifest: ShardManifest;
  /** The shard was complete before. */
  readonly wasComplete: boolean;
  /** Shards of the index that are complete in this folder, and how many there are to be. */
  readonly complete: number;
  readonly shards: number;
}

/**
 * Corpus → index directory. Nothing is visible at `out` before all of it is written. A build that was stopped or killed
 * is gone on with where it was, and gives the index that an undisturbed one gives.
 *
 * @throws TrawlError BUILD_DIFFERS when another build was begun there, BUILD_LOCKED while another process is at work
 * there; INDEX_EXISTS, DISK_FULL, OUTPUT_NOT_WRITABLE; errors of corpus, template and encoder.
 */
export async function buildIndex(options: BuildOptions): Promise<BuildSummary> {
  const begun = begin(options);
  const output = await OutputFolder.prepare(options.out, options.overwrite);
  try {
    const scan = await begun.scan();
    const shards = scan === undefined ? 1 : shardCount(scan.positions, options.shardRows ?? DEFAULT_SHARD_ROWS);
    const record = buildRecord({ ...options, model: options.encoder.identity, shards, scan });
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
    // Before anything is embedded, which may take days.
    if (options.uniqueIds) {
      const duplicates = duplicateIds(
        places.map(({ folder }) => join(folder, PASSAGES_FILE)),
        options,
      );
      if (duplicates.count > 0) throw repeatedIds(duplicates);
    }
    await checkRoomForVectors(output, options, open, rows - rowsDone);
    const built = await begun.encode(open, { scan, corpus, rows, rowsDone, shards });
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
  const begun = begin(options);
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
    await checkRoomForVectors(output, options, [place], stored.rows);
    const [built] = await begun.encode([place], { scan, corpus, rows: stored.rows, rowsDone: 0, shards: of });
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

async function finishJobFolder(folder: string): Promise<void> {
  await rm(join(folder, BUILD_FILE), { force: true });
  removeLockFiles(folder);
}

function shardDiffers(
  shard: ShardManifest,
  { encoder, passageTemplate, corpusOptions }: BuildOptions,
  scan: CorpusScan,
  { first, end }: ShardPlace,
  shards: number,
): string[] {
  const input = { first, end, positions: scan.positions, shards };
  const { reading, modelLocation: _, ...found } = shard.input ?? { reading: {}, modelLocation: '' };
  return [
    ...fieldsDiffer('model', shard.model, encoder.identity),
    ...valuesDiffer('passage template', shard.corpus.passageTemplate, passageTemplate),
    ...fieldsDiffer('option', reading, readingRecord(corpusOptions)),
    ...corpusDiffers(shard.corpus.files, filesOf(scan)),
    ...fieldsDiffer('part', found, input),
  ];
}

interface EncodePlan {
  readonly scan: CorpusScan | undefined;
  readonly corpus: Corpus;
  readonly rows: number;
  readonly rowsDone: number;
  readonly shards: number;
}

/** What a build of the whole and of a shard do alike. The template is looked at first: it costs nothing. */
function begin(options: BuildOptions) {
  const { corpusOptions, encoder, kernel, passageTemplate, onProgress, signal } = options;
  const template = parseTemplate(passageTemplate);
  const files = listCorpusFiles(options.corpus, corpusOptions.format);
  const times = new StageClock();
  return {
    times,
    async scan(): Promise<CorpusScan | undefined> {
      times.start('scan');
      // A pipe is there once.
      if (files.some(({ path }) => !statSync(path).isFile())) return undefined;
      const total = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      onProgress({ stage: 'scan', passages: 0, readShare: 0 });
      return scanCorpus(files, {
        signal,
        onBytes: (bytes) => onProgress({ stage: 'scan', passages: 0, readShare: Math.min(1, bytes / total) }),
      });
    },
    read(places: readonly ShardPlace[], scan: CorpusScan | undefined): Promise<Corpus> {
      times.start('read');
      onProgress({ stage: 'read', passages: 0, readShare: 0 });
      return storePassages(places, template, { corpus: options.corpus, corpusOptions, scan, onProgress, signal });
    },
    async encode(places: readonly ShardPlace[], plan: EncodePlan): Promise<BuiltShard[]> {
      times.start('encode');
      const { scan, corpus, rows: totalPassages, shards } = plan;
      const context: ShardContext = {
        encoder,
        kernel,
        template,
        passageTemplate,
        corpusFiles: scan === undefined ? readFiles(corpus) : filesOf(scan),
        checkpointMs: options.checkpointMs ?? DEFAULT_CHECKPOINT_MS,
        onNote: options.onNote ?? (() => undefined),
        signal,
      };
      const built: BuiltShard[] = [];
      const location = modelLocation(options);
      let before = plan.rowsDone;
      let tokens = 0;
      for (const { folder, index, first, end } of places) {
        const input = scan && {
          first,
          end,
          positions: scan.positions,
          shards,
          reading: readingRecord(corpusOptions),
          ...(location === undefined ? {} : { modelLocation: location }),
        };
        let tokensBefore: number | undefined;
        const shard = await buildShard(folder, input, context, (progress) => {
          times.start(progress.finishing ? 'finish' : 'encode');
          tokensBefore ??= progress.tokens;
          onProgress({
            stage: 'encode',
            passages: before + progress.rows,
            totalPassages,
            tokens: tokens + progress.tokens - tokensBefore,
            shard: index,
            shards,
          });
        });
        before += shard.manifest.rows;
        tokens += shard.tokens;
        built.push(shard);
      }
      return built;
    },
  };
}

/** From the folder of the index. */
function modelLocation({ modelFolder, out }: BuildOptions): string | undefined {
  return modelFolder === undefined ? undefined : relative(resolve(out), resolve(modelFolder));
}

function filesOf(scan: CorpusScan): ShardContext['corpusFiles'] {
  return scan.files.map(({ path, sizeBytes, sha256 }) => ({ name: basename(path), bytes: sizeBytes, sha256 }));
}

function readFiles(corpus: Corpus): ShardContext['corpusFiles'] {
  return corpus.report.files.map(({ path, readBytes, sha256 }) => ({
    name: basename(path),
    bytes: readBytes,
    sha256: sha256!,
  }));
}

/** Sums the time of each stage; shards go back and forth between two of them. */
class StageClock {
  readonly #ms = { scan: 0, read: 0, encode: 0, finish: 0 };
  #stage: keyof StageTimes | undefined;
  #since = 0;

  get stages(): StageTimes {
    return { ...this.#ms };
  }

  start(stage: keyof StageTimes): void {
    if (stage === this.#stage) return;
    this.stop();
    this.#stage = stage;
    this.#since = performance.now();
  }

  stop(): void {
    if (this.#stage !== undefined) this.#ms[this.#stage] += performance.now() - this.#since;
    this.#stage = undefined;
  }
}

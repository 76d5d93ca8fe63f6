import { statSync } from 'node:fs';
import { basename, relative, resolve } from 'node:path';
import { type CorpusFile, listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import { type PassageTemplate, parseTemplate } from '../../corpus/passage-template.ts';
import { type CorpusScan, scanCorpus } from '../../corpus/scan-corpus.ts';
import { bug } from '../../src/base/errors.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { StageClock } from '../stage-clock.ts';
import { adoptShard } from '../vectors/adopt-shard.ts';
import { shardRows } from '../vectors/precomputed-vectors.ts';
import type { WorkOptions } from './build-options.ts';
import { readingRecord } from './build-settings.ts';
import {
  type BuiltShard,
  buildShard,
  type CorpusFileRecord,
  DEFAULT_CHECKPOINT_MS,
  type ShardContext,
  type ShardProgress,
} from './build-shard.ts';
import { buildTextShard } from './build-text-shard.ts';
import type { PlannedShard, StoredShard } from './planned-shard.ts';
import { storePassages } from './store-passages.ts';

/** A shard whose passages are stored and whose vectors are still to be made. */
export interface OpenShard extends StoredShard {
  /** The shard's part of the corpus. Shards without it cannot be joined with others. */
  readonly input?: ShardManifest['input'];
}

/** Totals over all shards of a command, including the complete ones. */
export interface BuildTotals {
  readonly corpusFiles: readonly CorpusFileRecord[];
  readonly rows: number;
  /** Rows of the shards that were already complete. */
  readonly rowsDone: number;
  readonly shards: number;
}

/** The steps of builds, jobs and updates. Call in this order: `scan`, `storePassages`, `makeVectors`, `finish`. */
export class BuildRun {
  readonly clock = new StageClock();
  readonly #options: WorkOptions;
  readonly #template: PassageTemplate;
  readonly #files: readonly CorpusFile[];
  readonly #stage: 'encode' | 'vectors' | 'words';

  /** @throws TrawlError TEMPLATE_INVALID, and the errors of `listCorpusFiles`. */
  constructor(options: WorkOptions) {
    this.#options = options;
    if (options.encoder === undefined && options.bm25 === undefined) throw bug('neither vectors nor words are indexed');
    this.#template = parseTemplate(options.passageTemplate);
    this.#files = listCorpusFiles(options.corpus, options.corpusOptions.format);
    this.#stage = options.encoder === undefined ? 'words' : options.vectors === undefined ? 'encode' : 'vectors';
  }

  /** The checksum and the number of lines of every corpus file. Undefined for a pipe, which can be read only once. */
  async scan(): Promise<CorpusScan | undefined> {
    const { onProgress, signal } = this.#options;
    this.clock.start('scan');
    if (this.#files.some(({ path }) => !statSync(path).isFile())) return undefined;
    const total = this.#files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    onProgress({ stage: 'scan', passages: 0, readShare: 0 });
    return scanCorpus(this.#files, {
      signal,
      onBytes: (bytes) => onProgress({ stage: 'scan', passages: 0, readShare: Math.min(1, bytes / total) }),
    });
  }

  /**
   * Reads the corpus and stores the passages of shards without stored passages.
   *
   * @param only input positions to store. Default: all.
   * @returns the corpus files for the manifests.
   */
  async storePassages(
    places: readonly PlannedShard[],
    scan: CorpusScan | undefined,
    only?: { has(position: number): boolean },
  ): Promise<readonly CorpusFileRecord[]> {
    const { corpus, corpusOptions, columns = [], onProgress, signal } = this.#options;
    this.clock.start('read');
    onProgress({ stage: 'read', passages: 0, readShare: 0 });
    const read = await storePassages(places, this.#template, {
      corpus,
      corpusOptions,
      scan,
      only,
      columns,
      onProgress,
      signal,
    });
    if (scan !== undefined) return fileRecords(scan);
    return read.report.files.map(({ path, readBytes, sha256 }) => ({
      name: basename(path),
      bytes: readBytes,
      sha256: sha256!,
    }));
  }

  /** Completes the shards one after another: embeds, adopts or copies their vectors. */
  async makeVectors(shards: readonly OpenShard[], totals: BuildTotals): Promise<BuiltShard[]> {
    this.clock.start(this.#stage);
    const context = this.#context(totals.corpusFiles);
    const built: BuiltShard[] = [];
    let [rowsBefore, tokensBefore] = [totals.rowsDone, 0];
    for (const shard of shards) {
      const { manifest, tokens, ...rest } = await this.#complete(shard, context, ({ doing, rows, tokens }) => {
        this.clock.start(doing === 'vectors' ? this.#stage : doing);
        const stage = doing === 'words' ? doing : this.#stage;
        this.#options.onProgress({
          stage,
          passages: rowsBefore + rows,
          totalPassages: totals.rows,
          ...(stage === 'encode' ? { tokens: tokensBefore + tokens } : {}),
          shard: shard.index,
          shards: totals.shards,
        });
      });
      rowsBefore += manifest.rows;
      tokensBefore += tokens;
      built.push({ manifest, tokens, ...rest });
    }
    return built;
  }

  /** Begins the last stage, in which the shards become an index. */
  finish(rows: number): void {
    this.clock.start('finish');
    this.#options.onProgress({ stage: 'finish', passages: rows, totalPassages: rows });
  }

  #complete(
    { folder, input, firstRow, rows }: OpenShard,
    context: ShardContext,
    onProgress: (progress: ShardProgress) => void,
  ): Promise<BuiltShard> {
    const { encoder, metric, vectors } = this.#options;
    if (encoder === undefined) return buildTextShard(folder, input, context, onProgress);
    const vectorContext = { ...context, encoder, metric: metric ?? encoder.identity.similarity };
    if (vectors === undefined) return buildShard(folder, input, vectorContext, onProgress);
    const source = { vectors, rows: shardRows(vectors, firstRow, rows) };
    return vectors.use === 'adopt'
      ? adoptShard(folder, input, vectorContext, source, onProgress)
      : buildShard(folder, input, vectorContext, onProgress, source);
  }

  #context(corpusFiles: readonly CorpusFileRecord[]): ShardContext {
    const { kernel, bm25, columns = [], passageTemplate, checkpointMs, onNote, signal } = this.#options;
    return {
      kernel,
      bm25,
      columns,
      template: this.#template,
      passageTemplate,
      corpusFiles,
      checkpointMs: checkpointMs ?? DEFAULT_CHECKPOINT_MS,
      onNote: onNote ?? (() => undefined),
      signal,
    };
  }
}

/** The record of a shard's part of the corpus in its manifest, for `joinShards`. */
export function shardInput(
  options: WorkOptions,
  { positions }: CorpusScan,
  { first, end }: PlannedShard,
  shards: number,
): NonNullable<ShardManifest['input']> {
  const location = modelLocation(options);
  return {
    first,
    end,
    positions,
    shards,
    reading: readingRecord(options.corpusOptions),
    modelLocation: location,
  };
}

/** Path of the model's folder relative to the index. Undefined for a model that came with Trawl. */
export function modelLocation({ modelFolder, out }: WorkOptions): string | undefined {
  return modelFolder === undefined ? undefined : relative(resolve(out), resolve(modelFolder));
}

/** The corpus files as a manifest records them. */
export function fileRecords(scan: CorpusScan): readonly CorpusFileRecord[] {
  return scan.files.map(({ path, sizeBytes, sha256 }) => ({ name: basename(path), bytes: sizeBytes, sha256 }));
}

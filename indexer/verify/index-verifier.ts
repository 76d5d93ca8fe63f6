import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import { isWritten } from '../../src/encoder/written-vectors.ts';
import { type CheckedRows, type Kernel, loadKernel } from '../../src/engine/native/kernel.ts';
import { type IndexManifest, vectorSpace } from '../../src/index/manifest/index-manifest.ts';
import { SHARD_MANIFEST_FILE } from '../../src/index/manifest/shard-manifest.ts';
import { type OpenedShard, prefilterPath, within } from '../../src/search/opening/index-directory.ts';
import { findNonFinite, nativeRows, readSegments, shardSegments } from '../vectors/read-segments.ts';
import { columnProblems } from './verify-columns.ts';
import { lexicalOfShard, type NamedLexical } from './verify-lexical.ts';
import { passageProblems } from './verify-passages.ts';
import { checksumProblems, problem, problemOf, type VerifyProblem } from './verify-problem.ts';
import { type SampleReport, verifySample } from './verify-sample.ts';
import { verifyWords } from './verify-words.ts';

export interface VerifyOptions {
  readonly quick?: boolean;
  /** Passages to embed again, and to analyse again where there are inverted indexes. Default: 0. */
  readonly sample?: number;
  /** See `SampleOptions`. */
  readonly largestDistance?: number;
  /** Opens the model of the index. Called at most once, only if there are passages to embed. */
  readonly openEncoder?: (folder: string, manifest: IndexManifest) => Promise<TextEncoder>;
  /** Open the model first, and fail without it. */
  readonly requireEncoder?: boolean;
  /** `step` is such as `codes of <folder>`; `totalBytes` counts a file once for each check that reads it. */
  readonly onProgress?: (progress: {
    readonly step: string;
    readonly doneBytes: number;
    readonly totalBytes: number;
  }) => void;
  readonly signal?: AbortSignal;
}

export interface VerifyReport {
  readonly problems: readonly VerifyProblem[];
  /** Sentences about checks that could not be made. */
  readonly notChecked: readonly string[];
  readonly rows: number;
  readonly shards: number;
  /** Null if no passage was embedded again. */
  readonly sample: Omit<SampleReport, 'problems'> | null;
  /** Passages analysed again. Null without inverted indexes or a sample. */
  readonly analysed: number | null;
}

/** Reads the files of shards, collects problems, and reports progress. */
export class IndexVerifier {
  readonly problems: VerifyProblem[] = [];
  readonly notChecked: string[] = [];
  readonly #shards: readonly OpenedShard[];
  readonly #options: VerifyOptions;
  readonly #totalBytes: number;
  #doneBytes = 0;
  #step = '';

  /** @param deletedTexts the inverted indexes over the texts of deleted rows. */
  constructor(shards: readonly OpenedShard[], deletedTexts: readonly NamedLexical[], options: VerifyOptions) {
    this.#shards = shards;
    this.#options = options;
    this.#totalBytes =
      shards.reduce((sum, shard) => sum + bytesToRead(shard), 0) +
      deletedTexts.reduce((sum, { path }) => sum + size(path), 0);
  }

  async verifyShard(shard: OpenedShard): Promise<void> {
    const { folder, manifest } = shard;
    await this.#checksums(shard);
    if (manifest.model !== null) {
      this.#begin(`vectors of ${folder}`);
      await this.#vectors(shard);
    }
    if (manifest.codes !== null) {
      this.#begin(`codes of ${folder}`);
      await this.#codes(shard);
    }
    for (const { path } of lexicalOfShard(folder, manifest)) await this.verifyLexical(path);
    if (manifest.columns !== undefined) {
      this.#begin(`columns of ${folder}`);
      this.problems.push(...(await columnProblems(shard)));
    }
    this.#begin(`passages of ${folder}`);
    const onBytes = (bytes: number): void => this.#add(bytes);
    this.problems.push(...(await passageProblems(shard, { onBytes, signal: this.#options.signal })));
    const passages = manifest.corpus.files.reduce((sum, file) => sum + file.passages, 0);
    if (manifest.input !== undefined && passages !== manifest.rows) {
      const found = `the corpus files have ${passages} passages, the shard has ${manifest.rows} rows`;
      this.problems.push(problem(join(folder, SHARD_MANIFEST_FILE), found));
    }
  }

  /**
   * Embeds passages again. Null if `sample` is 0, the index is empty, clients wrote its vectors, or the model cannot be opened.
   *
   * @param required the encoder, if it is already open.
   */
  async verifySample(
    folder: string,
    manifest: IndexManifest,
    required: TextEncoder | undefined,
  ): Promise<VerifyReport['sample']> {
    const { sample = 0, largestDistance, openEncoder, signal } = this.#options;
    const isEmpty = this.#shards.every((shard) => shard.manifest.rows === 0);
    const space = vectorSpace(manifest);
    if (sample === 0 || openEncoder === undefined || space === undefined || isEmpty || isWritten(manifest.model))
      return null;
    this.#begin(`embedding ${sample} passages again with ${space.model.name}`);
    let encoder: TextEncoder;
    try {
      encoder = required ?? (await openEncoder(folder, manifest));
    } catch (error) {
      if (!(error instanceof TrawlError) || error.code === 'CANCELLED' || error.code === 'INTERNAL') throw error;
      this.notChecked.push(`Whether passages and vectors belong together was not checked: ${error.message}`);
      return null;
    }
    try {
      const onPassages = (): void => this.#report();
      const index = { ...manifest, model: space.model };
      const options = { sample, largestDistance, onPassages, signal };
      const { problems, ...report } = await verifySample(this.#shards, index, encoder, options);
      this.problems.push(...problems);
      return report;
    } finally {
      await encoder.close();
    }
  }

  /** Analyses passages again. Null if `sample` is 0, there are no inverted indexes, or the engine is missing. */
  async verifyWords(manifest: IndexManifest): Promise<number | null> {
    const { sample = 0, signal } = this.#options;
    const loaded = loadKernel();
    if (sample === 0 || !loaded.ok || manifest.bm25 === undefined) return null;
    this.#begin(`analysing ${sample} passages again`);
    const { problems, passages } = await verifyWords(manifest, this.#shards, loaded.kernel, { sample, signal });
    this.problems.push(...problems);
    return passages;
  }

  async #checksums({ folder, manifest }: OpenedShard): Promise<void> {
    const { signal } = this.#options;
    const onBytes = (bytes: number): void => this.#add(bytes);
    for (const file of manifest.files) {
      const path = within(folder, file.path);
      this.#begin(`checksum of ${path}`);
      this.problems.push(...(await checksumProblems(path, file.sha256, { signal, onBytes })));
    }
    for (const segment of manifest.vectors) {
      if (segment.adopted === undefined) continue;
      const path = within(folder, segment.path);
      this.#begin(`checksum of bytes ${segment.offset} to ${segment.offset + segment.bytes} of ${path}`);
      this.problems.push(...(await checksumProblems(path, segment.adopted.sha256, { signal, onBytes, part: segment })));
    }
  }

  async #vectors(shard: OpenedShard): Promise<void> {
    const { dimension } = shard.manifest;
    const segments = shardSegments(shard);
    const { signal } = this.#options;
    for await (const { first, values, parts } of readSegments(segments, dimension, { signal })) {
      const bad = findNonFinite({ values, first, segments, dimension });
      if (bad !== undefined) {
        const found = `row ${bad.row} has ${bad.value} in column ${bad.column}; vectors must be finite`;
        this.problems.push(problem(bad.path, found));
        return;
      }
      this.#add(parts.reduce((sum, { bytes }) => sum + bytes.length, 0));
    }
  }

  /** Computes the bounds of every row again. If a bound is too small, a search can miss the row. */
  async #codes(shard: OpenedShard): Promise<void> {
    const { signal } = this.#options;
    const { codes, rows: count, dimension } = shard.manifest;
    const path = within(shard.folder, codes!.path);
    const kernel = this.#kernelFor(path, 'bounds');
    if (kernel === undefined) return;
    const rows = nativeRows(count, shardSegments(shard));
    await this.#bounds(path, () => kernel.verifyCodes(path, rows, dimension, signal));
    this.#add(vectorBytes(shard) + statSync(path).size);
    const prefilter = prefilterPath(shard);
    if (prefilter === null) return;
    await this.#bounds(prefilter, () => kernel.verifyPrefilter(prefilter, path, rows, dimension, signal));
    this.#add(vectorBytes(shard) + statSync(prefilter).size);
  }

  /** Decodes every posting and compares it with the bounds of its block and list. */
  async verifyLexical(path: string): Promise<void> {
    this.#begin(`inverted index ${path}`);
    const kernel = this.#kernelFor(path, 'postings');
    if (kernel === undefined) return;
    try {
      const found = await kernel.verifyLexical(path, this.#options.signal);
      if (found !== null) this.problems.push(problem(path, found));
    } catch (error) {
      this.problems.push(problemOf(error, path));
    }
    this.#add(size(path));
  }

  async #bounds(path: string, check: () => Promise<CheckedRows>): Promise<void> {
    try {
      const { badRow, reason } = await check();
      if (badRow >= 0) this.problems.push(problem(path, `row ${badRow}: ${reason}`));
    } catch (error) {
      this.problems.push(problemOf(error, path));
    }
  }

  #kernelFor(path: string, what: string): Kernel | undefined {
    const loaded = loadKernel();
    if (loaded.ok) return loaded.kernel;
    this.notChecked.push(`${path}: its ${what} were not checked: the native engine is missing (${loaded.reason}).`);
    return undefined;
  }

  #begin(step: string): void {
    throwIfCancelled(this.#options.signal);
    this.#step = step;
    this.#report();
  }

  #add(bytes: number): void {
    this.#doneBytes += bytes;
    this.#report();
  }

  #report(): void {
    const { onProgress } = this.#options;
    onProgress?.({ step: this.#step, doneBytes: this.#doneBytes, totalBytes: this.#totalBytes });
  }
}

function bytesToRead(shard: OpenedShard): number {
  const { manifest, folder } = shard;
  const codes = manifest.codes === null ? null : within(folder, manifest.codes.path);
  const prefilter = prefilterPath(shard);
  const vectors = vectorBytes(shard);
  return (
    manifest.files.reduce((sum, { bytes }) => sum + bytes, 0) +
    manifest.vectors.reduce((sum, { adopted, bytes }) => sum + (adopted === undefined ? 0 : bytes), 0) +
    vectors +
    (codes === null ? 0 : vectors + size(codes)) +
    (prefilter === null ? 0 : vectors + size(prefilter)) +
    lexicalOfShard(folder, manifest).reduce((sum, { path }) => sum + size(path), 0) +
    size(within(folder, manifest.passages.path))
  );
}

function size(path: string | null): number {
  return path !== null && existsSync(path) ? statSync(path).size : 0;
}

function vectorBytes({ manifest }: OpenedShard): number {
  return manifest.vectors.reduce((sum, { bytes }) => sum + bytes, 0);
}

import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import { type CheckedRows, loadKernel } from '../../src/engine/native/kernel.ts';
import { SegmentReader } from '../../src/engine/vectors/vector-segments.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { SHARD_MANIFEST_FILE } from '../../src/index/manifest/shard-manifest.ts';
import { vectorSpace } from '../../src/index/manifest/vector-space.ts';
import { type OpenedShard, prefilterPath, within } from '../../src/search/opening/index-directory.ts';
import { findNonFinite } from '../vectors/check-finite.ts';
import { nativeRows, shardSegments } from '../vectors/shard-segments.ts';
import { columnProblems } from './verify-columns.ts';
import { lexicalOfShard, type NamedLexical } from './verify-lexical.ts';
import { passageProblems } from './verify-passages.ts';
import { problem, problemOf, type VerifyProblem } from './verify-problem.ts';
import type { VerifyOptions, VerifyReport } from './verify-report.ts';
import { verifySample } from './verify-sample.ts';
import { verifyWords } from './verify-words.ts';

/** Bytes of vectors between two checks of the signal. */
const BLOCK_BYTES = 4 * 1024 * 1024;

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
      const file = join(folder, SHARD_MANIFEST_FILE);
      this.problems.push(
        problem(file, `the corpus files have ${passages} passages, the shard has ${manifest.rows} rows`),
      );
    }
  }

  /**
   * Embeds passages again. Null if `sample` is 0, the index is empty, or the model cannot be opened.
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
    if (sample === 0 || openEncoder === undefined || space === undefined || isEmpty) return null;
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
      const { problems, ...report } = await verifySample(this.#shards, { ...manifest, model: space.model }, encoder, {
        sample,
        largestDistance,
        onPassages,
        signal,
      });
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
      const sha256 = await sha256OfFile(path, signal, onBytes);
      if (sha256 !== file.sha256) {
        this.problems.push(problem(path, `sha256 is ${sha256}, the manifest says ${file.sha256}`));
      }
    }
    for (const segment of manifest.vectors) {
      const { adopted, offset, bytes } = segment;
      if (adopted === undefined) continue;
      const path = within(folder, segment.path);
      const part = `bytes ${offset} to ${offset + bytes}`;
      this.#begin(`checksum of ${part} of ${path}`);
      const sha256 = await sha256OfFile(path, signal, onBytes, segment);
      if (sha256 !== adopted.sha256) {
        const found = `sha256 of ${part} is ${sha256}; it was ${adopted.sha256} when the file was adopted`;
        this.problems.push(problem(path, found));
      }
    }
  }

  /** Finds the first value that is not finite. */
  async #vectors(shard: OpenedShard): Promise<void> {
    const { dimension, rows } = shard.manifest;
    const segments = shardSegments(shard);
    const reader = new SegmentReader(segments, dimension);
    const rowsPerBlock = Math.max(1, Math.floor(BLOCK_BYTES / (dimension * 4)));
    const block = new Float32Array(rowsPerBlock * dimension);
    const bytesPerRow = rows === 0 ? 0 : vectorBytes(shard) / rows;
    try {
      for (let first = 0; first < rows; first += rowsPerBlock) {
        const count = Math.min(rowsPerBlock, rows - first);
        reader.read(first, count, block);
        const values = block.subarray(0, count * dimension);
        const bad = findNonFinite({ values, first, segments, dimension });
        if (bad !== undefined) {
          const found = `row ${bad.row} has ${bad.value} in column ${bad.column}; vectors must be finite`;
          this.problems.push(problem(bad.path, found));
          return;
        }
        this.#add(count * bytesPerRow);
        // Yield to the event loop, so that process signals are handled.
        await setImmediate();
        throwIfCancelled(this.#options.signal);
      }
    } finally {
      reader.close();
    }
  }

  /** Computes the bounds of every row again. If a bound is too small, a search can miss the row. */
  async #codes(shard: OpenedShard): Promise<void> {
    const { signal } = this.#options;
    const { codes, rows: count, dimension } = shard.manifest;
    const path = within(shard.folder, codes!.path);
    const loaded = loadKernel();
    if (!loaded.ok) {
      this.notChecked.push(`${path}: its bounds were not checked: the native engine is missing (${loaded.reason}).`);
      return;
    }
    const rows = nativeRows(count, shardSegments(shard));
    const { kernel } = loaded;
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
    const loaded = loadKernel();
    if (!loaded.ok) {
      this.notChecked.push(`${path}: its postings were not checked: the native engine is missing (${loaded.reason}).`);
      return;
    }
    try {
      const found = await loaded.kernel.verifyLexical(path, this.#options.signal);
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

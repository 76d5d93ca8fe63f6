import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { throwIfCancelled } from '../../src/abort.ts';
import type { TextEncoder } from '../../src/embedding/text-encoder.ts';
import { TrawlError } from '../../src/errors.ts';
import { sha256OfFile } from '../../src/file-checksum.ts';
import type { IndexManifest } from '../../src/manifest/index-manifest.ts';
import { SHARD_MANIFEST_FILE } from '../../src/manifest/shard-manifest.ts';
import { type OpenedShard, screenPath, within } from '../../src/retrieval/index-directory.ts';
import { type CheckedRows, loadKernel } from '../../src/vector-index/kernel.ts';
import { SegmentReader } from '../../src/vector-index/vector-segments.ts';
import { passageProblems } from './verify-passages.ts';
import { problem, problemOf, type VerifyProblem } from './verify-problem.ts';
import type { VerifyOptions, VerifyReport } from './verify-report.ts';
import { verifySample } from './verify-sample.ts';

/** Bytes of vectors looked at between two looks at the signal. */
const BLOCK_BYTES = 4 * 1024 * 1024;

/** The reading of everything, with its progress. */
export class Examination {
  readonly problems: VerifyProblem[] = [];
  readonly notChecked: string[] = [];
  readonly #shards: readonly OpenedShard[];
  readonly #options: VerifyOptions;
  readonly #totalBytes: number;
  #doneBytes = 0;
  #step = '';

  constructor(shards: readonly OpenedShard[], options: VerifyOptions) {
    this.#shards = shards;
    this.#options = options;
    this.#totalBytes = shards.reduce((sum, shard) => sum + bytesToRead(shard), 0);
  }

  async examine(shard: OpenedShard): Promise<void> {
    const { signal } = this.#options;
    for (const file of shard.manifest.files) {
      const path = within(shard.folder, file.path);
      this.#begin(`checksum of ${path}`);
      const sha256 = await sha256OfFile(path, signal, (bytes) => this.#add(bytes));
      if (sha256 !== file.sha256) {
        this.problems.push(problem(path, `sha256 is ${sha256}, the manifest says ${file.sha256}`));
      }
    }
    for (const segment of shard.manifest.vectors) {
      const { adopted, offset, bytes } = segment;
      if (adopted === undefined) continue;
      const path = within(shard.folder, segment.path);
      const part = `bytes ${offset} to ${offset + bytes}`;
      this.#begin(`checksum of ${part} of ${path}`);
      const sha256 = await sha256OfFile(path, signal, (count) => this.#add(count), segment);
      if (sha256 !== adopted.sha256) {
        const found = `sha256 of ${part} is ${sha256}, and was ${adopted.sha256} when the file was adopted`;
        this.problems.push(problem(path, found));
      }
    }
    this.#begin(`vectors of ${shard.folder}`);
    await this.#vectors(shard);
    if (shard.manifest.codes !== null) {
      this.#begin(`codes of ${shard.folder}`);
      await this.#codes(shard);
    }
    this.#begin(`passages of ${shard.folder}`);
    this.problems.push(...(await passageProblems(shard, { onBytes: (bytes) => this.#add(bytes), signal })));
    const { files } = shard.manifest.corpus;
    const passages = files.reduce((sum, file) => sum + file.passages, 0);
    if (shard.manifest.input !== undefined && passages !== shard.manifest.rows) {
      const file = join(shard.folder, SHARD_MANIFEST_FILE);
      this.problems.push(problem(file, `${passages} passages of corpus files for ${shard.manifest.rows} rows`));
    }
  }

  async sample(
    folder: string,
    manifest: IndexManifest,
    required: TextEncoder | undefined,
  ): Promise<VerifyReport['sample']> {
    const { sample = 0, openEncoder, signal } = this.#options;
    if (sample === 0 || openEncoder === undefined || this.#shards.every((shard) => shard.manifest.rows === 0))
      return null;
    this.#begin(`embedding ${sample} passages again with ${manifest.model.name}`);
    let encoder: TextEncoder;
    try {
      encoder = required ?? (await openEncoder(folder, manifest));
    } catch (error) {
      if (!(error instanceof TrawlError) || error.code === 'CANCELLED' || error.code === 'INTERNAL') throw error;
      this.notChecked.push(`Whether passages and vectors belong together was not checked: ${error.message}`);
      return null;
    }
    try {
      const { problems, ...report } = await verifySample(this.#shards, manifest, encoder, {
        sample,
        onPassages: () => this.#tell(),
        signal,
      });
      this.problems.push(...problems);
      return report;
    } finally {
      await encoder.close();
    }
  }

  /** The first value of a shard that is not finite. */
  async #vectors(shard: OpenedShard): Promise<void> {
    const { dimension, rows } = shard.manifest;
    const segments = shard.manifest.vectors.map((segment) => ({
      ...segment,
      path: within(shard.folder, segment.path),
    }));
    const reader = new SegmentReader(segments, dimension);
    const rowsPerBlock = Math.max(1, Math.floor(BLOCK_BYTES / (dimension * 4)));
    const block = new Float32Array(rowsPerBlock * dimension);
    const bytesPerRow = rows === 0 ? 0 : vectorBytes(shard) / rows;
    try {
      for (let first = 0; first < rows; first += rowsPerBlock) {
        const count = Math.min(rowsPerBlock, rows - first);
        reader.read(first, count, block);
        const bad = firstNotFinite(block, count * dimension);
        if (bad >= 0) {
          const [row, column] = [first + Math.floor(bad / dimension), bad % dimension];
          const file = segments[0]!.path;
          const found = `row ${row} holds ${block[bad]} in column ${column}; vectors must be finite`;
          this.problems.push(problem(file, found));
          return;
        }
        this.#add(count * bytesPerRow);
        // A turn of the event loop, for signals.
        await new Promise((resolve) => setImmediate(resolve));
        throwIfCancelled(this.#options.signal);
      }
    } finally {
      reader.close();
    }
  }

  /** Derives the bounds of every row again: a bound that is too small could lose a row from an answer. */
  async #codes(shard: OpenedShard): Promise<void> {
    const { signal } = this.#options;
    const path = within(shard.folder, shard.manifest.codes!.path);
    const loaded = loadKernel();
    if (!loaded.ok) {
      this.notChecked.push(
        `${path}: its bounds were not derived again: the native engine is not there (${loaded.reason}).`,
      );
      return;
    }
    const segments = shard.manifest.vectors.map((segment) => ({
      ...segment,
      path: within(shard.folder, segment.path),
    }));
    const { dimension } = shard.manifest;
    const rows = { rows: shard.manifest.rows, dtype: segments[0]?.dtype ?? ('float32' as const), segments };
    const { kernel } = loaded;
    await this.#bounds(path, () => kernel.verifyCodes(path, rows, dimension, signal));
    this.#add(vectorBytes(shard) + statSync(path).size);
    const screen = screenPath(shard);
    if (screen === null) return;
    await this.#bounds(screen, () => kernel.verifyScreen(screen, path, rows, dimension, signal));
    this.#add(vectorBytes(shard) + statSync(screen).size);
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
    this.#tell();
  }

  #add(bytes: number): void {
    this.#doneBytes += bytes;
    this.#tell();
  }

  #tell(): void {
    const { onProgress } = this.#options;
    onProgress?.({ step: this.#step, doneBytes: this.#doneBytes, totalBytes: this.#totalBytes });
  }
}

function bytesToRead(shard: OpenedShard): number {
  const { manifest, folder } = shard;
  const size = (path: string | null): number => (path !== null && existsSync(path) ? statSync(path).size : 0);
  const codes = manifest.codes === null ? null : within(folder, manifest.codes.path);
  const screen = screenPath(shard);
  const vectors = vectorBytes(shard);
  return (
    manifest.files.reduce((sum, { bytes }) => sum + bytes, 0) +
    manifest.vectors.reduce((sum, { adopted, bytes }) => sum + (adopted === undefined ? 0 : bytes), 0) +
    vectors +
    (codes === null ? 0 : vectors + size(codes)) +
    (screen === null ? 0 : vectors + size(screen)) +
    size(within(folder, manifest.passages.path))
  );
}

function vectorBytes({ manifest }: OpenedShard): number {
  return manifest.vectors.reduce((sum, { bytes }) => sum + bytes, 0);
}

function firstNotFinite(values: Float32Array, count: number): number {
  for (let i = 0; i < count; i++) if (!Number.isFinite(values[i]!)) return i;
  return -1;
}

import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { throwIfCancelled } from '../../src/abort.ts';
import type { TextEncoder } from '../../src/embedding/text-encoder.ts';
import { TrawlError } from '../../src/errors.ts';
import { sha256OfFile } from '../../src/file-checksum.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../../src/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/manifest/read-manifest.ts';
import { SHARD_MANIFEST_FILE } from '../../src/manifest/shard-manifest.ts';
import {
  type OpenedShard,
  openIndexDirectory,
  openShard,
  readAlive,
  screenPath,
  within,
} from '../../src/retrieval/index-directory.ts';
import { type CheckedRows, loadKernel } from '../../src/vector-index/kernel.ts';
import { SegmentReader } from '../../src/vector-index/vector-segments.ts';
import { passageProblems } from './verify-passages.ts';
import { problem, problemOf, type VerifyProblem } from './verify-problem.ts';
import { type SampleReport, verifySample } from './verify-sample.ts';

/** Bytes of vectors looked at between two looks at the signal. */
const BLOCK_BYTES = 4 * 1024 * 1024;

export interface VerifyOptions {
  /** Manifests, sizes and headers alone: what is read does not grow with the index. */
  readonly quick?: boolean;
  /** Passages to embed again, [0, ∞). Default 0. */
  readonly sample?: number;
  /** Makes them; called once, where there is something to embed. */
  readonly openEncoder?: (folder: string, manifest: IndexManifest) => Promise<TextEncoder>;
  /** Opens it before anything else, and lets its error end the examination. */
  readonly requireEncoder?: boolean;
  readonly onProgress?: (progress: VerifyProgress) => void;
  readonly signal?: AbortSignal | undefined;
}

export interface VerifyProgress {
  /** What is being done, in a few words. */
  readonly step: string;
  readonly doneBytes: number;
  /** Bytes that are read in all; files that are read for several checks count for each. */
  readonly totalBytes: number;
}

export interface VerifyReport {
  readonly problems: readonly VerifyProblem[];
  /** What was to be checked and could not be, as sentences. */
  readonly notChecked: readonly string[];
  readonly rows: number;
  readonly shards: number;
  /** Null where no passage was embedded again. */
  readonly sample: Omit<SampleReport, 'problems'> | null;
}

/**
 * Examines an index. Whole: the checksum of every file, SQLite's pages, the content hash, every bound of the codes, that
 * vectors are finite, the tombstones, the counts, and passages against vectors by embedding a sample. Problems are
 * collected, so one damaged file hides no other.
 *
 * @throws TrawlError INDEX_NOT_FOUND; CANCELLED. What is wrong with a manifest is a problem found.
 */
export async function examineIndex(path: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  const folder = resolve(path);
  const problems: VerifyProblem[] = [];
  const manifest = openManifest(folder, problems);
  if (manifest === undefined) return { problems, notChecked: [], rows: 0, shards: 0, sample: null };
  const notChecked = withoutChecksum(join(folder, INDEX_MANIFEST_FILE));
  const shards: OpenedShard[] = [];
  for (const entry of manifest.shards) {
    throwIfCancelled(options.signal);
    const file = join(within(folder, entry.path), SHARD_MANIFEST_FILE);
    try {
      shards.push(openShard(folder, manifest, entry));
      notChecked.push(...withoutChecksum(file));
    } catch (error) {
      problems.push(problemOf(error, file));
      notChecked.push(`${within(folder, entry.path)}: the rest of the shard was not read, because of the above.`);
    }
  }
  problems.push(...(await tombstoneProblems(folder, manifest)));
  const counts = { rows: manifest.rows, shards: manifest.shards.length };
  if (options.quick === true) return { problems, notChecked, ...counts, sample: null };
  const run = new Examination(shards, options);
  const isRequired = options.requireEncoder === true && (options.sample ?? 0) > 0;
  const required = isRequired ? await options.openEncoder?.(folder, manifest) : undefined;
  try {
    for (const shard of shards) await run.examine(shard);
    const sample = await run.sample(folder, manifest, required);
    return {
      problems: [...problems, ...run.problems],
      notChecked: [...notChecked, ...run.notChecked],
      ...counts,
      sample,
    };
  } finally {
    await required?.close();
  }
}

/**
 * The problems of an index as sentences, without the model; empty when there are none.
 *
 * @throws the errors of `openIndexDirectory` when files are missing or have the wrong size.
 */
export async function verifyIndex(
  folder: string,
  { onStep, signal }: { onStep: (doing: string) => void; signal?: AbortSignal },
): Promise<string[]> {
  openIndexDirectory(folder);
  const { problems } = await examineIndex(folder, { onProgress: ({ step }) => onStep(step), signal });
  return problems.map(({ message }) => message);
}

function openManifest(folder: string, problems: VerifyProblem[]): IndexManifest | undefined {
  const file = join(folder, INDEX_MANIFEST_FILE);
  try {
    const manifest = readIndexManifest(folder);
    if (manifest.model.dimension !== manifest.dimension) {
      problems.push(problem(file, `dimension ${manifest.dimension} with a model of ${manifest.model.dimension}`));
    }
    return manifest;
  } catch (error) {
    if (error instanceof TrawlError && error.code === 'INDEX_NOT_FOUND') throw error;
    problems.push(problemOf(error, file));
    return undefined;
  }
}

function withoutChecksum(file: string): string[] {
  const has = Object.hasOwn(JSON.parse(readFileSync(file, 'utf8')) as object, 'checksum');
  return has ? [] : [`${file}: has no checksum of itself, so a change in it would not be seen.`];
}

async function tombstoneProblems(folder: string, manifest: IndexManifest): Promise<VerifyProblem[]> {
  if (manifest.tombstones === null) return [];
  const { path, sha256, rows } = manifest.tombstones;
  const file = within(folder, path);
  try {
    const alive = readAlive(folder, manifest);
    const problems: VerifyProblem[] = [];
    const found = await sha256OfFile(file);
    if (found !== sha256) problems.push(problem(file, `sha256 is ${found}, the manifest says ${sha256}`));
    const removed = manifest.rows - alive.count();
    if (removed !== rows) problems.push(problem(file, `${removed} rows are removed, the manifest says ${rows}`));
    for (let row = manifest.rows; row < 8 * alive.bytes.length; row++) {
      if ((alive.bytes[Math.floor(row / 8)]! & (1 << (row % 8))) === 0) {
        problems.push(problem(file, `row ${row} is removed, and the index has ${manifest.rows} rows`));
      }
    }
    return problems;
  } catch (error) {
    return [problemOf(error, file)];
  }
}

/** The reading of everything, with its progress. */
class Examination {
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

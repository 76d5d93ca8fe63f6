import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256OfFile } from '../../src/file-checksum.ts';
import type { FileRecord } from '../../src/manifest/schemas.ts';
import type { ShardManifest } from '../../src/manifest/shard-manifest.ts';
import { CodesWriter } from '../../src/vector-index/codes-writer.ts';
import { FlatIndexWriter, type FlatShape, type VectorCheckpoint } from '../../src/vector-index/flat-index-writer.ts';
import type { Kernel } from '../../src/vector-index/kernel.ts';
import { CODES_FILE, VECTORS_FILE } from '../index-files.ts';
import { makeScreen } from '../optimize/make-screen.ts';

/** What a shard's manifest says of its vectors. */
export interface WrittenShardVectors {
  readonly vectors: ShardManifest['vectors'];
  readonly codes: ShardManifest['codes'];
  /** Absent where there are no codes. */
  readonly screen?: ShardManifest['screen'];
  readonly files: readonly FileRecord[];
  /** SHA-256 of the vector file: what identifies the content, since codes follow from it. */
  readonly sha256: string;
}

export interface OpenShardVectors {
  /** The engine that makes the codes. Without it none are made; `trawl optimize` can make them later. */
  readonly kernel: Kernel | undefined;
  /** Up to where the vectors are known to be on the disk. */
  readonly checkpoint?: VectorCheckpoint | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The vector files of a shard as rows arrive: the exact rows, and beside them the codes where there is an engine. Only the
 * rows are resumed; the codes of a shard that is not finished are made again from them.
 */
export class ShardVectors {
  readonly #folder: string;
  readonly #rows: FlatIndexWriter;
  readonly #codes: CodesWriter | undefined;
  readonly #dimension: number;
  readonly #kernel: Kernel | undefined;

  private constructor(
    folder: string,
    rows: FlatIndexWriter,
    codes: CodesWriter | undefined,
    dimension: number,
    kernel: Kernel | undefined,
  ) {
    this.#folder = folder;
    this.#rows = rows;
    this.#codes = codes;
    this.#dimension = dimension;
    this.#kernel = kernel;
  }

  /** Begins the files, or takes them up at the checkpoint; from row 0 where they are not what it says. */
  static async open(folder: string, shape: FlatShape, options: OpenShardVectors): Promise<ShardVectors> {
    const { kernel, checkpoint, signal } = options;
    const path = join(folder, VECTORS_FILE);
    const newCodes = (): CodesWriter | undefined =>
      kernel === undefined ? undefined : new CodesWriter(join(folder, CODES_FILE), shape, kernel);
    let codes = newCodes();
    try {
      if (checkpoint !== undefined && checkpoint.rows > 0) {
        const onRows = async (block: Float32Array): Promise<void> => codes?.append(block);
        const rows = await FlatIndexWriter.resume(path, shape, checkpoint, { onRows, signal });
        if (rows !== undefined) return new ShardVectors(folder, rows, codes, shape.dimension, kernel);
        codes?.abandon();
        codes = newCodes();
      }
      return new ShardVectors(folder, await FlatIndexWriter.create(path, shape), codes, shape.dimension, kernel);
    } catch (error) {
      codes?.abandon();
      throw error;
    }
  }

  get rowsWritten(): number {
    return this.#rows.rowsWritten;
  }

  /** @param rows row-major, any number of rows. Wait for one call before the next. */
  async append(rows: Float32Array): Promise<void> {
    // The exact rows go first: they are what says where a value is not finite.
    await this.#rows.append(rows);
    await this.#codes?.append(rows);
  }

  /** Makes the rows durable. */
  checkpoint(): Promise<VectorCheckpoint> {
    return this.#rows.checkpoint();
  }

  async finish(signal?: AbortSignal): Promise<WrittenShardVectors> {
    const rowsWritten = this.#rows.rowsWritten;
    const written = await this.#rows.finish();
    const vectorFile: FileRecord = { path: VECTORS_FILE, bytes: written.fileBytes, sha256: written.sha256 };
    const vectors = [{ ...written.segment, path: VECTORS_FILE }];
    const { sha256 } = written;
    if (this.#codes === undefined || this.#kernel === undefined) {
      return { vectors, codes: null, files: [vectorFile], sha256 };
    }
    const codesFile = await this.#finishCodes(this.#codes, signal);
    const { screen, file } = await makeScreen(
      this.#folder,
      join(this.#folder, CODES_FILE),
      {
        rows: { rows: rowsWritten, dtype: written.segment.dtype, segments: [written.segment] },
        dimension: this.#dimension,
      },
      this.#kernel,
      { signal },
    );
    const files = [vectorFile, codesFile, ...(file === undefined ? [] : [file])];
    return { vectors, codes: { path: CODES_FILE }, screen, files, sha256 };
  }

  /** Closes without finishing: after an error. */
  async abandon(): Promise<void> {
    await this.#rows.abandon();
    this.#codes?.abandon();
  }

  async #finishCodes(codes: CodesWriter, signal: AbortSignal | undefined): Promise<FileRecord> {
    await codes.finish();
    const path = join(this.#folder, CODES_FILE);
    return { path: CODES_FILE, bytes: (await stat(path)).size, sha256: await sha256OfFile(path, signal) };
  }
}

import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256OfFile } from '../src/file-checksum.ts';
import type { FileRecord } from '../src/manifest/schemas.ts';
import type { ShardManifest } from '../src/manifest/shard-manifest.ts';
import type { Metric } from '../src/metric.ts';
import { CodesWriter } from '../src/vector-index/codes-writer.ts';
import { FlatIndexWriter } from '../src/vector-index/flat-index-writer.ts';
import type { Kernel } from '../src/vector-index/kernel.ts';
import { CODES_FILE, VECTORS_FILE } from './index-files.ts';
import { makeScreen } from './make-screen.ts';

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

/** The vector files of a shard as rows arrive: the exact rows, and beside them the codes where there is an engine. */
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

  /** Without a kernel no codes are made; `trawl optimize` can make them later. */
  static async create(
    folder: string,
    shape: { rows: number; dimension: number; metric: Metric },
    kernel: Kernel | undefined,
  ): Promise<ShardVectors> {
    const rows = await FlatIndexWriter.create(join(folder, VECTORS_FILE), shape);
    const codes = kernel === undefined ? undefined : new CodesWriter(join(folder, CODES_FILE), shape, kernel);
    return new ShardVectors(folder, rows, codes, shape.dimension, kernel);
  }

  get rowsWritten(): number {
    return this.#rows.rowsWritten;
  }

  /** @param rows row-major, any number of rows. */
  async append(rows: Float32Array): Promise<void> {
    await this.#rows.append(rows);
    await this.#codes?.append(rows);
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
    const codesFile = await this.#finishCodes(this.#codes);
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

  async #finishCodes(codes: CodesWriter): Promise<FileRecord> {
    await codes.finish();
    const path = join(this.#folder, CODES_FILE);
    return { path: CODES_FILE, bytes: (await stat(path)).size, sha256: await sha256OfFile(path) };
  }
}

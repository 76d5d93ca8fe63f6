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

/** What a shard's manifest says of its vectors. */
export interface WrittenShardVectors {
  readonly vectors: ShardManifest['vectors'];
  readonly codes: ShardManifest['codes'];
  readonly files: readonly FileRecord[];
  /** SHA-256 of the vector file: what identifies the content, since codes follow from it. */
  readonly sha256: string;
}

/** The vector files of a shard as rows arrive: the exact rows, and beside them the codes where there is an engine. */
export class ShardVectors {
  readonly #folder: string;
  readonly #rows: FlatIndexWriter;
  readonly #codes: CodesWriter | undefined;

  private constructor(folder: string, rows: FlatIndexWriter, codes: CodesWriter | undefined) {
    this.#folder = folder;
    this.#rows = rows;
    this.#codes = codes;
  }

  /** Without a kernel no codes are made; `trawl optimize` can make them later. */
  static async create(
    folder: string,
    shape: { rows: number; dimension: number; metric: Metric },
    kernel: Kernel | undefined,
  ): Promise<ShardVectors> {
    const rows = await FlatIndexWriter.create(join(folder, VECTORS_FILE), shape);
    const codes = kernel === undefined ? undefined : new CodesWriter(join(folder, CODES_FILE), shape, kernel);
    return new ShardVectors(folder, rows, codes);
  }

  get rowsWritten(): number {
    return this.#rows.rowsWritten;
  }

  /** @param rows row-major, any number of rows. */
  async append(rows: Float32Array): Promise<void> {
    await this.#rows.append(rows);
    await this.#codes?.append(rows);
  }

  async finish(): Promise<WrittenShardVectors> {
    const written = await this.#rows.finish();
    const vectorFile: FileRecord = { path: VECTORS_FILE, bytes: written.fileBytes, sha256: written.sha256 };
    const codesFile = this.#codes === undefined ? undefined : await this.#finishCodes(this.#codes);
    return {
      vectors: [{ ...written.segment, path: VECTORS_FILE }],
      codes: codesFile === undefined ? null : { path: CODES_FILE },
      files: codesFile === undefined ? [vectorFile] : [vectorFile, codesFile],
      sha256: written.sha256,
    };
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

import { join } from 'node:path';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { CodesWriter } from '../../src/engine/vectors/codes-writer.ts';
import { FlatIndexWriter, type FlatShape, type VectorCheckpoint } from '../../src/engine/vectors/flat-index-writer.ts';
import type { VectorSegment } from '../../src/engine/vectors/vector-segments.ts';
import type { FileRecord } from '../../src/index/manifest/schemas.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { CODES_FILE, fileRecord, VECTORS_FILE } from '../index-files.ts';
import { makePrefilter } from '../optimize/make-prefilter.ts';
import { nativeRows } from '../vectors/shard-segments.ts';

/** The fields of a shard's manifest that describe its vectors. */
export interface WrittenShardVectors {
  readonly vectors: ShardManifest['vectors'];
  readonly codes: ShardManifest['codes'];
  /** Absent without codes. */
  readonly prefilter?: ShardManifest['prefilter'];
  readonly files: readonly FileRecord[];
  /** SHA-256 of the vectors. Identifies the content of all files, because the others are derived from the vectors. */
  readonly sha256: string;
}

export interface OpenShardVectors {
  /** Makes the codes. Without it, `trawl optimize` can make them later. */
  readonly kernel: Kernel | undefined;
  /** The checkpoint of an earlier run. */
  readonly checkpoint?: VectorCheckpoint;
  readonly signal?: AbortSignal;
}

/**
 * Writes the vector files of a shard: the vectors and, with a kernel, the codes. A resumed build keeps the vectors of its
 * checkpoint and makes the codes again from them.
 */
export class ShardVectors {
  readonly #folder: string;
  readonly #shape: FlatShape;
  readonly #kernel: Kernel | undefined;
  readonly #rows: FlatIndexWriter;
  readonly #codes: CodesWriter | undefined;

  private constructor(
    folder: string,
    shape: FlatShape,
    kernel: Kernel | undefined,
    { rows, codes }: { readonly rows: FlatIndexWriter; readonly codes: CodesWriter | undefined },
  ) {
    this.#folder = folder;
    this.#shape = shape;
    this.#kernel = kernel;
    this.#rows = rows;
    this.#codes = codes;
  }

  /** Resumes at the checkpoint, or starts at row 0 if there is no checkpoint or the files do not match it. */
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
        if (rows !== undefined) return new ShardVectors(folder, shape, kernel, { rows, codes });
        codes?.abandon();
        codes = newCodes();
      }
      return new ShardVectors(folder, shape, kernel, { rows: await FlatIndexWriter.create(path, shape), codes });
    } catch (error) {
      codes?.abandon();
      throw error;
    }
  }

  get rowsWritten(): number {
    return this.#rows.rowsWritten;
  }

  /** @param rows row-major, any number of rows. Await each call before the next. */
  async append(rows: Float32Array): Promise<void> {
    // First, because its error names the row and column of a value that is not finite.
    await this.#rows.append(rows);
    await this.#codes?.append(rows);
  }

  /** Syncs the rows to the disk. */
  checkpoint(): Promise<VectorCheckpoint> {
    return this.#rows.checkpoint();
  }

  async finish(signal?: AbortSignal): Promise<WrittenShardVectors> {
    const written = await this.#rows.finish();
    const vectorFile: FileRecord = { path: VECTORS_FILE, bytes: written.fileBytes, sha256: written.sha256 };
    const vectors = [{ ...written.segment, path: VECTORS_FILE }];
    const { sha256 } = written;
    await this.#codes?.finish();
    const derived = await derivedFiles(this.#folder, [written.segment], this.#shape, { kernel: this.#kernel, signal });
    return { ...derived, vectors, files: [vectorFile, ...derived.files], sha256 };
  }

  /** Closes the files after an error. */
  async abandon(): Promise<void> {
    await this.#rows.abandon();
    this.#codes?.abandon();
  }
}

/** Makes the prefilter of a shard's finished codes, and the records of both files. */
export async function derivedFiles(
  folder: string,
  segments: readonly VectorSegment[],
  { rows, dimension }: Pick<FlatShape, 'rows' | 'dimension'>,
  { kernel, signal }: Pick<OpenShardVectors, 'kernel' | 'signal'>,
): Promise<Pick<WrittenShardVectors, 'codes' | 'prefilter' | 'files'>> {
  if (kernel === undefined) return { codes: null, files: [] };
  const path = join(folder, CODES_FILE);
  const codes = await fileRecord(path, signal);
  const vectors = { rows: nativeRows(rows, segments), dimension };
  const { prefilter, file } = await makePrefilter(folder, path, vectors, kernel, { signal });
  return { codes: { path: CODES_FILE }, prefilter, files: [codes, ...(file === undefined ? [] : [file])] };
}

import { join } from 'node:path';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { CodesWriter } from '../../src/engine/vectors/codes-writer.ts';
import { FlatIndexWriter, type FlatShape, type VectorCheckpoint } from '../../src/engine/vectors/flat-index-writer.ts';
import type { VectorSegment } from '../../src/engine/vectors/vector-segments.ts';
import type { FileRecord } from '../../src/index/manifest/schemas.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { CODES_FILE, fileRecord, VECTORS_FILE } from '../index-files.ts';
import { makePrefilter } from '../optimize/derived-files.ts';
import { nativeRows } from '../vectors/read-segments.ts';

/** The fields of a shard's manifest that describe its vectors. */
export interface WrittenShardVectors {
  readonly vectors: ShardManifest['vectors'];
  readonly codes: ShardManifest['codes'];
  /** Absent without codes. */
  readonly prefilter?: ShardManifest['prefilter'];
  readonly files: readonly FileRecord[];
  /** SHA-256 of the vectors. Identifies the content of all these files, because codes and prefilter are derived from the vectors. */
  readonly sha256: string;
}

/**
 * Opens the vector files of a shard for writing: the vectors and, with a kernel, the codes. Resumes at the checkpoint, for which it makes
 * the codes again, or starts at row 0 if there is no checkpoint or the files do not match it.
 *
 * @param options.kernel makes the codes. Without it, `trawl optimize` can make them later.
 */
export async function openShardVectors(
  folder: string,
  shape: FlatShape,
  { kernel, checkpoint, signal }: { kernel: Kernel | undefined; checkpoint?: VectorCheckpoint; signal?: AbortSignal },
) {
  const path = join(folder, VECTORS_FILE);
  const newCodes = (): CodesWriter | undefined =>
    kernel === undefined ? undefined : new CodesWriter(join(folder, CODES_FILE), shape, kernel);
  let codes = newCodes();
  let vectors: FlatIndexWriter | undefined;
  try {
    if (checkpoint !== undefined && checkpoint.rows > 0) {
      const onRows = async (block: Float32Array): Promise<void> => codes?.append(block);
      vectors = await FlatIndexWriter.resume(path, shape, checkpoint, { onRows, signal });
      if (vectors === undefined) {
        codes?.abandon();
        codes = newCodes();
      }
    }
    vectors ??= await FlatIndexWriter.create(path, shape);
  } catch (error) {
    codes?.abandon();
    throw error;
  }
  const writer = vectors;
  return {
    get rowsWritten(): number {
      return writer.rowsWritten;
    },
    /** @param rows row-major, any number of rows. Await each call before the next. */
    async append(rows: Float32Array): Promise<void> {
      // The vectors first: if a value is not finite, the error of `writer` names row and column.
      await writer.append(rows);
      await codes?.append(rows);
    },
    checkpoint: () => writer.checkpoint(),
    /** @param missing rows of the shape that have no vector. The file gets a header without them. */
    async finish(stop?: AbortSignal, missing = 0): Promise<WrittenShardVectors> {
      const { segment, fileBytes, sha256 } = await writer.finish(missing, stop);
      await codes?.finish();
      const { dimension } = shape;
      const written = { rows: writer.rowsWritten, dimension };
      const derived = await derivedFiles(folder, [segment], written, { kernel, signal: stop });
      const files = [{ path: VECTORS_FILE, bytes: fileBytes, sha256 }, ...derived.files];
      return { ...derived, vectors: [{ ...segment, path: VECTORS_FILE }], files, sha256 };
    },
    async abandon(): Promise<void> {
      await writer.abandon();
      codes?.abandon();
    },
  };
}

/** Makes the prefilter of a shard's finished codes, and the records of both files. */
export async function derivedFiles(
  folder: string,
  segments: readonly VectorSegment[],
  { rows, dimension }: Pick<FlatShape, 'rows' | 'dimension'>,
  { kernel, signal }: { kernel: Kernel | undefined; signal?: AbortSignal },
): Promise<Pick<WrittenShardVectors, 'codes' | 'prefilter' | 'files'>> {
  if (kernel === undefined) return { codes: null, files: [] };
  const path = join(folder, CODES_FILE);
  const codes = await fileRecord(path, signal);
  const vectors = { rows: nativeRows(rows, segments), dimension };
  const { prefilter, files } = await makePrefilter(folder, path, vectors, kernel, { signal });
  return { codes: { path: CODES_FILE }, prefilter, files: [codes, ...files] };
}

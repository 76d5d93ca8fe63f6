import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { encodePassages } from '../../indexer/building/encode-passages.ts';
import { openShardVectors, type WrittenShardVectors } from '../../indexer/building/shard-vectors.ts';
import { isNodeError, TrawlError } from '../../src/base/errors.ts';
import { writeJsonDurably } from '../../src/base/system/durable-file.ts';
import { FileLock } from '../../src/base/system/file-lock.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import type { VectorCheckpoint } from '../../src/engine/vectors/flat-index-writer.ts';
import type { IndexSource } from '../../src/engine/vectors/vector-index.ts';

const CHECKPOINT_MS = 5000;
const VERSION = 1;

/** `progress.json`: how far the vectors are. */
interface Progress {
  readonly format: 'trawl-triage';
  readonly version: number;
  readonly key: string;
  readonly checkpoint: VectorCheckpoint;
  /** Time that all runs spent on the embedding of these rows. */
  readonly embedMs: number;
}

interface PoolVectorsOptions {
  /** The work folder. The vectors of this pool and encoder have a folder in it. It is created. */
  readonly work: string;
  /** What the vectors depend on besides the encoder: the passages of the pool. */
  readonly pool: string;
  readonly count: number;
  /** The texts of the passages `[first, first + count)` of the pool. */
  readonly texts: (first: number, count: number) => Promise<readonly string[]>;
  /** The row in the index of a place in the pool, for messages. */
  readonly rowOf: (place: number) => number;
  readonly encoder: TextEncoder;
  readonly checkpointMs?: number;
  readonly onProgress: (passages: number) => void;
  readonly signal: AbortSignal;
}

/** The vectors of the passages of a pool, in a folder that is locked until `close`. */
export type PoolVectors = Awaited<ReturnType<typeof embedPool>>;

/**
 * Embeds the passages of a pool with one encoder into a folder whose name depends on both. What a kill leaves is resumed at the last
 * checkpoint.
 *
 * @throws TrawlError OUTPUT_EXISTS while another run embeds the same; OUTPUT_NOT_WRITABLE, DISK_FULL; the error of a passage that
 * cannot be embedded; CANCELLED with `resumable`.
 */
export async function embedPool(options: PoolVectorsOptions) {
  const { work, pool, encoder } = options;
  const key = createHash('sha256')
    .update(JSON.stringify([VERSION, encoder.identity, pool]))
    .digest('hex');
  const folder = join(work, key.slice(0, 16));
  let lock: FileLock | undefined;
  try {
    await mkdir(folder, { recursive: true });
    lock = FileLock.acquire(join(folder, 'lock'), 'exclusive');
    if (lock === undefined) {
      throw new TrawlError(
        'OUTPUT_EXISTS',
        `Another run embeds the same passages with the same model, in ${folder}. Wait until it has ended, or stop it: ` +
          'the same command then resumes.',
        { details: { path: folder } },
      );
    }
    const vectors = await embedInto(folder, key, options);
    const close = (): void => lock!.release();
    /** Removes the folder, before it releases the lock; and the work folder, unless something else is in it. */
    const remove = async (): Promise<void> => {
      await rm(folder, { recursive: true, force: true });
      close();
      await removeIfEmpty(work);
    };
    return { ...vectors, close, remove };
  } catch (error) {
    lock?.release();
    throw writeFailure(error, folder);
  }
}

/** Removes a work folder, unless something is in it. */
export async function removeIfEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST' && error.code !== 'ENOENT') throw error;
  });
}

async function embedInto(folder: string, key: string, options: PoolVectorsOptions) {
  const { count, texts, rowOf, encoder, onProgress, signal, checkpointMs = CHECKPOINT_MS } = options;
  const before = await readProgress(folder, key);
  const loaded = loadKernel();
  const shape = { rows: count, dimension: encoder.dimension, metric: encoder.identity.similarity };
  const vectors = await openShardVectors(folder, shape, {
    kernel: loaded.ok ? loaded.kernel : undefined,
    checkpoint: before?.checkpoint,
    signal,
  });
  const resumed = vectors.rowsWritten;
  let saved = resumed;
  let embedMs = resumed === 0 ? 0 : before!.embedMs;
  let begun = performance.now();
  const save = async (): Promise<void> => {
    const checkpoint = await vectors.checkpoint();
    embedMs += performance.now() - begun;
    begun = performance.now();
    const progress: Progress = { format: 'trawl-triage', version: VERSION, key, checkpoint, embedMs };
    await writeJsonDurably(join(folder, 'progress.json'), progress);
    saved = checkpoint.rows;
  };
  let written: WrittenShardVectors;
  try {
    onProgress(resumed);
    const passages = { texts, whereIs: (place: number) => ({ row: rowOf(place) }) };
    for await (const batch of encodePassages(passages, { from: resumed, rows: count }, encoder, signal)) {
      await vectors.append(batch.vectors);
      onProgress(vectors.rowsWritten);
      if (performance.now() - begun >= checkpointMs) await save();
    }
    if (vectors.rowsWritten > saved) await save();
    written = await vectors.finish();
  } catch (error) {
    // If the disk is full, this fails as well, and the next run resumes at the checkpoint before.
    if (signal.aborted) await save().catch(() => undefined);
    await vectors.abandon();
    if (!signal.aborted) throw error;
    const message = `Stopped after ${saved} of ${count} passages. The same command resumes there.`;
    throw new TrawlError('CANCELLED', message, { details: { resumable: true, passages: saved }, cause: error });
  }
  const path = (name: string): string => join(folder, name);
  const prefilter = written.prefilter?.path;
  const shard = {
    firstRow: 0,
    rows: count,
    segments: written.vectors.map((segment) => ({ ...segment, path: path(segment.path) })),
    codes: written.codes === null ? undefined : path(written.codes.path),
    prefilter: prefilter == null ? undefined : path(prefilter),
  };
  const { dimension, metric } = shape;
  /** For an engine; its rows are the places in the pool. */
  const source: IndexSource = { dimension, metric, rows: count, shards: [shard] };
  /** `embedMs`: time that all runs spent on embedding. `resumed`: passages that earlier runs embedded. */
  return { source, embedMs, resumed };
}

/** Undefined if there is none, or not one of this version and key: then the vectors are made from the first. */
async function readProgress(folder: string, key: string): Promise<Progress | undefined> {
  try {
    const progress = JSON.parse(await readFile(join(folder, 'progress.json'), 'utf8')) as Partial<Progress> | null;
    const fits = progress?.format === 'trawl-triage' && progress.version === VERSION && progress.key === key;
    return fits ? (progress as Progress) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || (isNodeError(error) && error.code === 'ENOENT')) return undefined;
    throw error;
  }
}

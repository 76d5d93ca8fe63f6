import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { inOrder } from '../bulk-search/in-order.ts';
import { ShardVectors } from '../indexer/building/shard-vectors.ts';
import { throwIfCancelled } from '../src/abort.ts';
import type { EncodeResult, TextEncoder } from '../src/embedding/text-encoder.ts';
import { isNodeError, TrawlError } from '../src/errors.ts';
import { loadKernel } from '../src/native/kernel.ts';
import { writeJsonDurably } from '../src/system/durable-file.ts';
import { FileLock } from '../src/system/file-lock.ts';
import { writeFailure } from '../src/system/write-failure.ts';
import type { VectorCheckpoint } from '../src/vector-index/flat-index-writer.ts';
import type { IndexSource } from '../src/vector-index/index-source.ts';

/** Passages of a call of the encoder. Batches begin at multiples of it, so that a resumed run has the vectors of an undisturbed one. */
const BATCH_PASSAGES = 256;
const BATCHES_AT_ONCE = 4;
/** Time between two checkpoints. */
const CHECKPOINT_MS = 5000;
const VERSION = 1;

/** `progress.json`: how far the vectors are. */
interface Progress {
  readonly format: 'trawl-triage';
  readonly version: number;
  /** What the folder is named after, in full. */
  readonly key: string;
  readonly checkpoint: VectorCheckpoint;
  /** Time that all runs spent on the embedding of these rows. */
  readonly embedMs: number;
}

export interface PoolVectorsOptions {
  /** The work folder. The vectors of this pool and encoder have a folder in it. It is created. */
  readonly work: string;
  /** What the vectors depend on besides the encoder: the passages of the pool. */
  readonly pool: string;
  /** Passages of the pool. */
  readonly count: number;
  /** The texts of the passages `[first, first + count)` of the pool. */
  readonly texts: (first: number, count: number) => Promise<readonly string[]>;
  /** The row in the index of a place in the pool, for messages. */
  readonly rowOf: (place: number) => number;
  readonly encoder: TextEncoder;
  readonly checkpointMs?: number | undefined;
  readonly onProgress: (passages: number) => void;
  readonly signal: AbortSignal;
}

/**
 * The vectors of the passages of a pool, embedded by one encoder into a folder whose name depends on both. What a kill leaves is resumed
 * at the last checkpoint. The folder is locked until `close`.
 */
export class PoolVectors {
  readonly folder: string;
  /** For an engine; its rows are the places in the pool. */
  readonly source: IndexSource;
  /** Time spent on embedding, by all runs. */
  readonly embedMs: number;
  /** Passages that were embedded by earlier runs. */
  readonly resumed: number;
  readonly #lock: FileLock;

  private constructor(
    folder: string,
    made: { readonly source: IndexSource; readonly embedMs: number; readonly resumed: number },
    lock: FileLock,
  ) {
    this.folder = folder;
    this.source = made.source;
    this.embedMs = made.embedMs;
    this.resumed = made.resumed;
    this.#lock = lock;
  }

  /**
   * @throws TrawlError OUTPUT_EXISTS while another run embeds the same; OUTPUT_NOT_WRITABLE, DISK_FULL; the error of a passage that
   * cannot be embedded; CANCELLED with `resumable`.
   */
  static async embed(options: PoolVectorsOptions): Promise<PoolVectors> {
    const { work, pool, encoder } = options;
    const key = createHash('sha256')
      .update(JSON.stringify([VERSION, encoder.identity, pool]))
      .digest('hex');
    const folder = join(work, key.slice(0, 16));
    let lock: FileLock | undefined;
    try {
      await mkdir(folder, { recursive: true });
      lock = FileLock.acquire(join(folder, 'lock'), 'exclusive');
    } catch (error) {
      throw writeFailure(error, folder);
    }
    if (lock === undefined) {
      throw new TrawlError('OUTPUT_EXISTS', `Another run embeds the same passages with the same model, in ${folder}.`, {
        details: { path: folder },
      });
    }
    try {
      return new PoolVectors(folder, await embedInto(folder, key, options), lock);
    } catch (error) {
      lock.release();
      throw writeFailure(error, folder);
    }
  }

  /** Releases the folder. */
  close(): void {
    this.#lock.release();
  }

  /** Removes the folder, before it releases the lock; and the work folder, unless something else is in it. */
  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
    this.#lock.release();
    await removeIfEmpty(dirname(this.folder));
  }
}

/** Removes a work folder, unless something is in it. */
export async function removeIfEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST' && error.code !== 'ENOENT') throw error;
  });
}

async function embedInto(
  folder: string,
  key: string,
  options: PoolVectorsOptions,
): Promise<{ source: IndexSource; embedMs: number; resumed: number }> {
  const { count, encoder, onProgress, signal, checkpointMs = CHECKPOINT_MS } = options;
  const before = await readProgress(folder, key);
  const loaded = loadKernel();
  const shape = { rows: count, dimension: encoder.dimension, metric: encoder.identity.similarity };
  const vectors = await ShardVectors.open(folder, shape, {
    kernel: loaded.ok ? loaded.kernel : undefined,
    checkpoint: before?.checkpoint,
    signal,
  });
  const resumed = vectors.rowsWritten;
  let embedMs = resumed === 0 ? 0 : before!.embedMs;
  let begun = performance.now();
  const save = async (): Promise<void> => {
    const checkpoint = await vectors.checkpoint();
    embedMs += performance.now() - begun;
    begun = performance.now();
    const progress: Progress = { format: 'trawl-triage', version: VERSION, key, checkpoint, embedMs };
    await writeJsonDurably(join(folder, 'progress.json'), progress);
  };
  try {
    onProgress(resumed);
    const embed = (first: number, stop: AbortSignal): Promise<Float32Array> => embedBatch(first, options, stop);
    for await (const rows of inOrder(batches(resumed, count), BATCHES_AT_ONCE, embed, signal)) {
      await vectors.append(rows);
      onProgress(vectors.rowsWritten);
      throwIfCancelled(signal);
      if (performance.now() - begun >= checkpointMs) await save();
    }
    if (vectors.rowsWritten > resumed) await save();
  } catch (error) {
    const embedded = vectors.rowsWritten;
    if (signal.aborted) await save();
    await vectors.abandon();
    if (!signal.aborted) throw error;
    throw new TrawlError(
      'CANCELLED',
      `Stopped after ${embedded} of ${count} passages. The same command resumes there.`,
      {
        details: { resumable: true, passages: embedded },
        cause: error,
      },
    );
  }
  const written = await vectors.finish();
  const path = (name: string): string => join(folder, name);
  const prefilter = written.prefilter?.path;
  const shard = {
    firstRow: 0,
    rows: count,
    segments: written.vectors.map((segment) => ({ ...segment, path: path(segment.path) })),
    ...(written.codes === null ? {} : { codes: path(written.codes.path) }),
    ...(prefilter == null ? {} : { prefilter: path(prefilter) }),
  };
  const { dimension, metric } = shape;
  return { source: { dimension, metric, rows: count, shards: [shard] }, embedMs, resumed };
}

async function* batches(from: number, count: number): AsyncGenerator<number, void> {
  for (let first = from; first < count; first += BATCH_PASSAGES) yield first;
}

async function embedBatch(
  first: number,
  { count, texts, rowOf, encoder }: PoolVectorsOptions,
  signal: AbortSignal,
): Promise<Float32Array> {
  const batch = await texts(first, Math.min(BATCH_PASSAGES, count - first));
  const { vectors, outcomes }: EncodeResult = await encoder.encode(batch, { inputType: 'passage', signal });
  for (const [i, outcome] of outcomes.entries()) {
    if (outcome.ok) continue;
    const { code, message, details } = outcome.error;
    const row = rowOf(first + i);
    throw new TrawlError(code, `The passage of row ${row} could not be embedded: ${message}`, {
      details: { ...details, row },
      cause: outcome.error,
    });
  }
  return vectors;
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

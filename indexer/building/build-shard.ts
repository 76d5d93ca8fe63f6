import { join } from 'node:path';
import type { PassageTemplate } from '../../corpus/passage-template.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { bug } from '../../src/base/errors.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { Column } from '../../src/engine/filter/column.ts';
import type { Bm25Settings } from '../../src/engine/lexical/lexical-settings.ts';
import type { Metric } from '../../src/engine/metric.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { CHECKPOINT_FILE, CheckpointRecord, readRecord } from '../../src/index/manifest/build-records.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { makeColumns } from '../columns/make-columns.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import { makeLexicalIfWanted } from '../lexical/make-lexical.ts';
import { checkFinite } from '../vectors/check-finite.ts';
import type { PrecomputedVectors, ShardRows } from '../vectors/precomputed-vectors.ts';
import { readSegments } from '../vectors/read-segments.ts';
import { CheckpointedRows } from './checkpointed-rows.ts';
import { type EncodedBatch, encodePassages, storedTexts } from './encode-passages.ts';
import { storedPassages } from './planned-shard.ts';
import { writeShardManifest } from './shard-manifest.ts';
import { ShardVectors } from './shard-vectors.ts';

/** Milliseconds between checkpoints. A killed build repeats the work since its last checkpoint. */
export const DEFAULT_CHECKPOINT_MS = 5_000;

/** Record of a corpus file in a manifest. */
export interface CorpusFileRecord {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** Settings shared by all shards of a build. */
export interface ShardContext {
  readonly kernel: Kernel | undefined;
  /** Settings of the inverted indexes. Undefined: none are made. */
  readonly bm25: Bm25Settings | undefined;
  /** The columns for filters. */
  readonly columns: readonly Column[];
  readonly template: PassageTemplate;
  readonly passageTemplate: string;
  readonly corpusFiles: readonly CorpusFileRecord[];
  /** Milliseconds between checkpoints. 0: after every batch. */
  readonly checkpointMs: number;
  readonly onNote: (text: string) => void;
  readonly signal: AbortSignal | undefined;
}

/** Settings of shards with vectors. */
export interface VectorContext extends ShardContext {
  readonly encoder: TextEncoder;
  /** Metric of embedded vectors. Precomputed vectors have their own. */
  readonly metric: Metric;
}

export interface ShardProgress {
  /** What the build does: it makes the vectors, then the inverted indexes, then completes the files. */
  readonly doing: 'vectors' | 'words' | 'finish';
  /** Rows that have passed this step. */
  readonly rows: number;
  /** Tokens that this call embedded. */
  readonly tokens: number;
}

export interface BuiltShard {
  readonly manifest: ShardManifest;
  /** Tokens that this call embedded. */
  readonly tokens: number;
  /** Rows whose vectors come from an earlier run. */
  readonly resumedRows: number;
}

/**
 * Embeds the stored passages of a shard, or copies precomputed vectors, and completes the shard. Each checkpoint syncs the
 * vectors to the disk, so that another process can resume. Writing the manifest completes the shard; it is immutable from
 * then on.
 *
 * @param source vectors to copy instead of embedding.
 */
export async function buildShard(
  folder: string,
  input: ShardManifest['input'],
  context: VectorContext,
  onProgress: (progress: ShardProgress) => void,
  source?: { readonly vectors: PrecomputedVectors; readonly rows: ShardRows },
): Promise<BuiltShard> {
  const { encoder, kernel, template, checkpointMs, signal } = context;
  const stored = storedPassages(folder);
  if (stored === undefined) throw bug(`${folder} has no passages`);
  const checkpoint = readRecord(CheckpointRecord, join(folder, CHECKPOINT_FILE)) ?? undefined;
  const { dimension } = encoder.identity;
  const metric = source?.vectors.metric ?? context.metric;
  const shape = { rows: stored.rows, dimension, metric };
  const passages = new PassageFile(join(folder, PASSAGES_FILE), { mapped: false });
  let vectors: ShardVectors | undefined;
  try {
    vectors = await ShardVectors.open(folder, shape, { kernel, checkpoint, signal });
    const rows = new CheckpointedRows(folder, vectors, {
      earlier: checkpoint,
      encoder: source === undefined ? encoder : undefined,
      everyMs: checkpointMs,
      signal,
    });
    const resumedRows = rows.resumed;
    if (checkpoint !== undefined && checkpoint.rows > 0 && resumedRows === 0) {
      context.onNote(`${folder}: the vectors do not match their checkpoint; the build computes them again.`);
    }
    const report = (doing: ShardProgress['doing'], done: number): void =>
      onProgress({ doing, rows: done, tokens: rows.tokens });
    report('vectors', resumedRows);
    const onBatch = async (batch: EncodedBatch): Promise<void> => {
      await rows.append(batch);
      report('vectors', rows.written);
      await rows.saveIfDue();
    };
    try {
      const range = { from: resumedRows, rows: shape.rows };
      if (source !== undefined) await copyVectors(source.rows, dimension, { from: resumedRows, onBatch, signal });
      else await encodePassages(storedTexts(passages, template), range, encoder, { onBatch, signal });
    } catch (error) {
      await rows.saveAfter(error);
      throw error;
    }
    report('finish', shape.rows);
    await rows.save();
    throwIfCancelled(signal);
    const written = await vectors.finish(signal);
    const lexical = await makeLexicalIfWanted(folder, context, (done) => report('words', done));
    const manifest = await writeShardManifest(folder, {
      rows: shape.rows,
      vectors: { space: { model: encoder.identity, metric, dimension }, written },
      stored,
      truncatedPassages: rows.truncatedPassages,
      lexical,
      columns: await makeColumns(folder, join(folder, PASSAGES_FILE), context.columns, { signal }),
      input,
      context,
    });
    return { manifest, tokens: rows.tokens, resumedRows };
  } catch (error) {
    await vectors?.abandon();
    throw error;
  } finally {
    passages.close();
  }
}

/**
 * Passes the vectors of a shard, starting with row `from`, to `onBatch`. Widens float16 to float32, which is exact.
 *
 * @throws TrawlError NON_FINITE_VECTOR with file, row and column; VECTORS_INVALID, CANCELLED, errors of `onBatch`.
 */
async function copyVectors(
  { segments, firstRow }: ShardRows,
  dimension: number,
  options: { from: number; onBatch: (batch: EncodedBatch) => Promise<void>; signal: AbortSignal | undefined },
): Promise<void> {
  const { from, onBatch, signal } = options;
  for await (const { first, values } of readSegments(segments, dimension, { first: from, signal })) {
    checkFinite({ values, first, segments, dimension }, firstRow);
    await onBatch({ vectors: values, tokens: 0, truncatedPassages: 0 });
  }
}

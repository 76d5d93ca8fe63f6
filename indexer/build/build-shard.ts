import { join } from 'node:path';
import type { PassageTemplate } from '../../corpus/passage-template.ts';
import { throwIfCancelled } from '../../src/abort.ts';
import type { TextEncoder } from '../../src/embedding/text-encoder.ts';
import { bug } from '../../src/errors.ts';
import { CHECKPOINT_FILE, CheckpointRecord, readRecord } from '../../src/manifest/build-records.ts';
import type { ShardManifest } from '../../src/manifest/shard-manifest.ts';
import { writeJsonDurably } from '../../src/manifest/write-json.ts';
import type { Metric } from '../../src/metric.ts';
import { PassageFile } from '../../src/passages/passage-file.ts';
import type { Kernel } from '../../src/vector-index/kernel.ts';
import { copyVectors } from '../vectors/copy-vectors.ts';
import { encodePassages } from './encode-passages.ts';
import type { GivenVectors, ShardRows } from '../vectors/given-vectors.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import { writeShardManifest } from './shard-manifest.ts';
import { ShardVectors } from './shard-vectors.ts';
import { storedPassages } from './store-passages.ts';

/** Time between two checkpoints where nothing else is asked for: what a killed build does again. */
export const DEFAULT_CHECKPOINT_MS = 5_000;

/** What the shards of a build have in common. */
export interface ShardContext {
  readonly encoder: TextEncoder;
  /** Of embedded vectors; given ones have their own. */
  readonly metric: Metric;
  readonly kernel: Kernel | undefined;
  readonly template: PassageTemplate;
  readonly passageTemplate: string;
  /** The corpus files, whole. */
  readonly corpusFiles: readonly Readonly<{ name: string; bytes: number; sha256: string }>[];
  /** 0: after every batch. */
  readonly checkpointMs: number;
  readonly onNote: (text: string) => void;
  readonly signal: AbortSignal | undefined;
}

export interface ShardProgress {
  /** Rows of this shard that have vectors. */
  readonly rows: number;
  readonly tokens: number;
  readonly finishing: boolean;
}

export interface BuiltShard {
  readonly manifest: ShardManifest;
  /** Embedded by this call. */
  readonly tokens: number;
  /** Rows that had vectors before. */
  readonly resumedRows: number;
  readonly encodeMs: number;
  readonly finishMs: number;
}

/**
 * Embeds the stored passages of a shard and completes it. Vectors are made durable now and then, with a note of how far
 * they go; a process that takes the shard up again goes on there. The shard counts from the moment its manifest is in
 * place, and is never changed after that.
 *
 * @param given vectors to copy in place of embedding.
 */
export async function buildShard(
  folder: string,
  input: ShardManifest['input'],
  context: ShardContext,
  onProgress: (progress: ShardProgress) => void,
  given?: { readonly vectors: GivenVectors; readonly rows: ShardRows },
): Promise<BuiltShard> {
  const { encoder, kernel, template, checkpointMs, signal } = context;
  const stored = storedPassages(folder);
  if (stored === undefined) throw bug(`${folder} has no passages`);
  const begun = performance.now();
  const note = readRecord(CheckpointRecord, join(folder, CHECKPOINT_FILE)) ?? undefined;
  const { dimension } = encoder.identity;
  const metric = given?.vectors.metric ?? context.metric;
  const shape = { rows: stored.rows, dimension, metric };
  const passages = new PassageFile(join(folder, PASSAGES_FILE), { mapped: false });
  let vectors: ShardVectors | undefined;
  try {
    const opened = await ShardVectors.open(folder, shape, { kernel, checkpoint: note, signal });
    vectors = opened;
    const resumedRows = opened.rowsWritten;
    let { tokens, truncatedPassages } = resumedRows > 0 ? note! : { tokens: 0, truncatedPassages: 0 };
    if (note !== undefined && note.rows > 0 && resumedRows === 0) {
      context.onNote(`${folder}: its vectors are not what was noted of them; they are made anew.`);
    }
    const tokensBefore = tokens;
    let savedAt = performance.now();
    let savedRows = resumedRows;
    const save = async (): Promise<void> => {
      const at = await opened.checkpoint();
      await writeJsonDurably(join(folder, CHECKPOINT_FILE), { ...at, tokens, truncatedPassages });
      savedAt = performance.now();
      savedRows = at.rows;
    };
    onProgress({ rows: resumedRows, tokens, finishing: false });
    const onBatch = async (batch: { vectors: Float32Array; tokens: number; truncatedPassages: number }) => {
      await opened.append(batch.vectors);
      tokens += batch.tokens;
      truncatedPassages += batch.truncatedPassages;
      onProgress({ rows: opened.rowsWritten, tokens, finishing: false });
      if (performance.now() - savedAt >= checkpointMs) await save();
    };
    try {
      if (given !== undefined) await copyVectors(given.rows, dimension, { from: resumedRows, onBatch, signal });
      else
        await encodePassages(passages, { from: resumedRows, rows: shape.rows }, template, encoder, { onBatch, signal });
    } catch (error) {
      // What was embedded is worth keeping, whatever ended it; where the disk is what failed, this fails too.
      if (opened.rowsWritten > savedRows) await save().catch(() => undefined);
      throw error;
    }
    const encoded = performance.now();
    onProgress({ rows: shape.rows, tokens, finishing: true });
    if (shape.rows > savedRows) await save();
    throwIfCancelled(signal);
    const written = await opened.finish(signal);
    const manifest = await writeShardManifest(folder, { shape, stored, truncatedPassages, written, input, context });
    return {
      manifest,
      tokens: tokens - tokensBefore,
      resumedRows,
      encodeMs: encoded - begun,
      finishMs: performance.now() - encoded,
    };
  } catch (error) {
    await vectors?.abandon();
    throw error;
  } finally {
    passages.close();
  }
}

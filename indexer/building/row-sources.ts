import { join } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { CHECKPOINT_FILE, CheckpointRecord, readRecord } from '../../src/index/manifest/build-records.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import { cutSegments } from '../vector-files/vector-file-set.ts';
import { checkFinite } from '../vectors/check-finite.ts';
import { readSegments } from '../vectors/read-segments.ts';
import type { Build } from './build.ts';
import { CheckpointedRows } from './checkpointed-rows.ts';
import { type EncodedBatch, encodePassages, storedTexts } from './encode-passages.ts';
import type { StoredShard } from './planned-shard.ts';
import { ShardVectors, type WrittenShardVectors } from './shard-vectors.ts';

/** Reports the rows of a shard that have passed a stage, and the tokens that this call embedded for it. */
export type ShardReport = (stage: Build['stage'], rows: number, tokens?: number) => void;

/** The vectors of a shard, on the disk. */
export interface MadeRows {
  /** Undefined for an index without vectors. */
  readonly vectors: WrittenShardVectors | undefined;
  /** Tokens that this call embedded. */
  readonly tokens: number;
  readonly truncatedPassages: number;
  /** Rows whose vectors come from an earlier run. */
  readonly resumedRows: number;
}

/** Makes the vectors of a shard with stored passages. `adoptedRows` in `vectors/` is one more. */
export type RowSource = (build: Build, shard: StoredShard, report: ShardReport) => Promise<MadeRows>;

/** For an index of words alone. */
export const noRows: RowSource = async (_build, _shard, report) => {
  report('words', 0);
  return { vectors: undefined, tokens: 0, truncatedPassages: 0, resumedRows: 0 };
};

/** Embeds the stored passages. */
export const embeddedRows: RowSource = async (build, shard, report) => {
  const { encoder, template, signal } = build;
  const passages = new PassageFile(join(shard.folder, PASSAGES_FILE), { mapped: false });
  try {
    const batches = (from: number): AsyncIterable<EncodedBatch> =>
      encodePassages(storedTexts(passages, template), { from, rows: shard.rows }, encoder!, signal);
    return await writeRows(build, shard, report, batches);
  } finally {
    passages.close();
  }
};

/**
 * Copies the vectors of files. Widens float16 to float32, which is exact.
 *
 * @throws TrawlError NON_FINITE_VECTOR with file, row and column; VECTORS_INVALID, CANCELLED.
 */
export const copiedRows: RowSource = (build, shard, report) => {
  const { set } = build.vectors!;
  const { dimension } = set;
  const segments = cutSegments(set, shard.firstRow, shard.rows);
  return writeRows(build, shard, report, async function* (from) {
    for await (const { first, values } of readSegments(segments, dimension, { first: from, signal: build.signal })) {
      checkFinite({ values, first, segments, dimension }, shard.firstRow);
      yield { vectors: values, tokens: 0, truncatedPassages: 0 };
    }
  });
};

/**
 * Writes the vectors of a shard, from the row at which an earlier run stopped. Each checkpoint syncs them to the disk, so that
 * another process can resume.
 *
 * @param batches the vectors from a row on.
 */
async function writeRows(
  { encoder, vectors: copied, space, kernel, checkpointMs, clock, stage, onNote, signal }: Build,
  { folder, rows }: StoredShard,
  report: ShardReport,
  batches: (from: number) => AsyncIterable<EncodedBatch>,
): Promise<MadeRows> {
  const { dimension, metric } = space!;
  const checkpoint = readRecord(CheckpointRecord, join(folder, CHECKPOINT_FILE)) ?? undefined;
  const vectors = await ShardVectors.open(folder, { rows, dimension, metric }, { kernel, checkpoint, signal });
  try {
    const written = new CheckpointedRows(folder, vectors, {
      earlier: checkpoint,
      encoder: copied === undefined ? encoder : undefined,
      everyMs: checkpointMs,
      signal,
    });
    const { resumed } = written;
    if (checkpoint !== undefined && checkpoint.rows > 0 && resumed === 0) {
      onNote(`${folder}: the vectors do not match their checkpoint; the build computes them again.`);
    }
    report(stage, resumed, written.tokens);
    try {
      for await (const batch of batches(resumed)) {
        await written.append(batch);
        report(stage, written.written, written.tokens);
        await written.saveIfDue();
      }
    } catch (error) {
      await written.saveAfter(error);
      throw error;
    }
    clock.start('finish');
    await written.save();
    throwIfCancelled(signal);
    const { tokens, truncatedPassages } = written;
    return { vectors: await vectors.finish(signal), tokens, truncatedPassages, resumedRows: resumed };
  } catch (error) {
    await vectors.abandon();
    throw error;
  }
}

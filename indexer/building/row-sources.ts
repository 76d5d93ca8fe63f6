import { join } from 'node:path';
import { MAX_EXAMPLES } from '../../corpus/open-corpus.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { asTrawlError, TrawlError } from '../../src/base/errors.ts';
import { writeJsonDurably } from '../../src/base/system/durable-file.ts';
import { CHECKPOINT_FILE, CheckpointRecord, readRecord } from '../../src/index/manifest/build-records.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import { cutSegments } from '../vector-files/vector-file-set.ts';
import { checkFinite, readSegments } from '../vectors/read-segments.ts';
import type { Build } from './build.ts';
import { type EncodedBatch, encodePassages, storedTexts } from './encode-passages.ts';
import type { StoredShard } from './planned-shard.ts';
import { openShardVectors, type WrittenShardVectors } from './shard-vectors.ts';

/** An encoder that may change is checked before each checkpoint. The time between checkpoints is at least this many times the check's. */
const CHECK_SHARE = 20;
/** Time limit of that check when a build ends early. After a longer check, the rows since the last checkpoint are not kept. */
const LAST_CHECK_MS = 5_000;

/** Reports the rows of a shard that have passed a stage, and the tokens that this call embedded for it. */
export type ShardReport = (stage: Build['stage'], rows: number, tokens?: number) => void;

interface MadeRows {
  /** Undefined for an index without vectors. */
  readonly vectors: WrittenShardVectors | undefined;
  readonly tokens: number;
  readonly truncatedPassages: number;
  /** Rows whose vectors come from an earlier run. */
  readonly resumedRows: number;
  /** Stored passages that have no vector, and are to leave the shard. */
  readonly refused: Refused;
}

/** Rows of stored passages, and messages about the first of them. */
export interface Refused {
  readonly rows: readonly number[];
  readonly examples: readonly string[];
}

export const NONE_REFUSED: Refused = { rows: [], examples: [] };

/** Makes the vectors of a shard whose passages are stored. `adoptedRows` in `indexer/vectors/` is a `RowSource`, too. */
export type RowSource = (build: Build, shard: StoredShard, report: ShardReport) => Promise<MadeRows>;

export const noRows: RowSource = async (_build, _shard, report) => {
  report('words', 0);
  return { vectors: undefined, tokens: 0, truncatedPassages: 0, resumedRows: 0, refused: NONE_REFUSED };
};

export const embeddedRows: RowSource = async (build, shard, report) => {
  const { encoder, template, reading, signal } = build;
  const passages = new PassageFile(join(shard.folder, PASSAGES_FILE));
  try {
    const { rows } = passages;
    const batches = (from: number): AsyncIterable<EncodedBatch> =>
      encodePassages(
        storedTexts(passages, template),
        { from, rows, skipsRefused: rows === shard.rows ? reading.skipBadLines : undefined },
        encoder!,
        signal,
      );
    return await writeRows(build, shard, report, batches, rows < shard.rows);
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
    const options = { first: from, files: 'build', signal: build.signal } as const;
    for await (const { first, values } of readSegments(segments, dimension, options)) {
      checkFinite({ values, first, segments, dimension }, shard.firstRow);
      yield { vectors: values, tokens: 0, truncatedPassages: 0, refused: [] };
    }
  });
};

/**
 * Writes the vectors of a shard, from the row at which an earlier run stopped. Each checkpoint syncs them to the disk, so that
 * another process can resume.
 *
 * @param batches the vectors of the passages from a row on.
 * @param isWithoutRefused whether an earlier run has removed the refused passages from the passage file already.
 */
async function writeRows(
  { encoder, vectors: copied, space, kernel, checkpointMs, clock, stage, onNote, signal }: Build,
  { folder, rows }: StoredShard,
  report: ShardReport,
  batches: (from: number) => AsyncIterable<EncodedBatch>,
  isWithoutRefused = false,
): Promise<MadeRows> {
  const { dimension, metric } = space!;
  const checkpoint = readRecord(CheckpointRecord, join(folder, CHECKPOINT_FILE)) ?? undefined;
  const vectors = await openShardVectors(folder, { rows, dimension, metric }, { kernel, checkpoint, signal });
  try {
    const resumedRows = vectors.rowsWritten;
    const before = resumedRows > 0 ? checkpoint! : { tokens: 0, truncatedPassages: 0 };
    let [tokens, truncatedPassages] = [0, before.truncatedPassages];
    const kept = isWithoutRefused || resumedRows > 0 ? checkpoint : undefined;
    const { refused, refusedExamples } = { refused: [], refusedExamples: [], ...kept };
    const rowsDone = (): number => vectors.rowsWritten + refused.length;
    let [savedRows, savedAt, checkMs] = [rowsDone(), performance.now(), 0];
    const save = async (stop = signal): Promise<void> => {
      if (rowsDone() === savedRows) return;
      const checkedAt = performance.now();
      // Rows become durable only after this check, so that no shard has rows of two models.
      if (copied === undefined) await encoder?.check?.(stop).catch(explainChangedModel);
      checkMs = performance.now() - checkedAt;
      const at = await vectors.checkpoint();
      const counts = { tokens: before.tokens + tokens, truncatedPassages };
      const record: CheckpointRecord = { ...at, ...counts, ...(refused.length > 0 && { refused, refusedExamples }) };
      await writeJsonDurably(join(folder, CHECKPOINT_FILE), record);
      [savedRows, savedAt] = [rowsDone(), performance.now()];
    };
    if (checkpoint !== undefined && checkpoint.rows > 0 && resumedRows === 0) {
      onNote(`${folder}: the vectors do not match their checkpoint; the build computes them again.`);
    }
    report(stage, rowsDone());
    try {
      for await (const batch of batches(isWithoutRefused ? resumedRows : rowsDone())) {
        await vectors.append(batch.vectors);
        tokens += batch.tokens;
        truncatedPassages += batch.truncatedPassages;
        for (const { row, message } of batch.refused) {
          refused.push(row);
          if (refusedExamples.length < MAX_EXAMPLES) refusedExamples.push(message);
        }
        report(stage, rowsDone(), tokens);
        if (performance.now() - savedAt >= Math.max(checkpointMs, CHECK_SHARE * checkMs)) await save();
      }
    } catch (error) {
      // Keeps the rows so far, unless they may be of another model. If the disk failed, this fails as well.
      const mayKeep = asTrawlError(error).code !== 'MODEL_MISMATCH';
      if (mayKeep) await save(AbortSignal.timeout(LAST_CHECK_MS)).catch(() => undefined);
      throw error;
    }
    clock.start('finish');
    await save();
    throwIfCancelled(signal);
    const written = await vectors.finish(signal, refused.length);
    return {
      vectors: written,
      tokens,
      truncatedPassages,
      resumedRows,
      refused: { rows: refused, examples: refusedExamples },
    };
  } catch (error) {
    await vectors.abandon();
    throw error;
  }
}

function explainChangedModel(error: unknown): never {
  const { code, message, details } = asTrawlError(error);
  if (code !== 'MODEL_MISMATCH') throw error;
  throw new TrawlError(
    code,
    `The model behind the endpoint changed during the build; the rows since the last checkpoint are not kept. ${message} ` +
      'Then the same command resumes the build.',
    { details, cause: error },
  );
}

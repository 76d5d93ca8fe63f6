import { asTrawlError } from '../../base/errors.ts';
import { packByLength, type TextBatch } from '../inference/length-groups.ts';

interface BatchRunsOptions {
  /** Tokens of a padded batch, padding included; null: texts are not padded, and batches are not divided. */
  readonly batchTokens: number | null;
  readonly run: (batch: TextBatch) => Promise<void>;
  readonly failed: (index: number, error: unknown) => void;
  /** Called when the device runs out of memory for a batch: no further batch has more tokens. */
  readonly onSmaller: (batchTokens: number) => void;
}

/**
 * Runs the batches of a chunk. If the device runs out of memory for one, it is divided into batches of half its tokens, and no
 * further batch is larger than these. After any other failure each text of the batch runs alone, so that only the texts at fault fail.
 *
 * @param lengths tokens of each text.
 */
export async function runBatches(
  batches: readonly TextBatch[],
  lengths: readonly number[],
  { batchTokens, run, failed, onSmaller }: BatchRunsOptions,
): Promise<void> {
  let limit = batchTokens ?? Number.POSITIVE_INFINITY;
  const smaller = ({ indexes }: TextBatch): TextBatch[] =>
    packByLength(
      indexes.map((index) => lengths[index]!),
      limit,
    ).map(({ indexes: chosen, ...shape }) => ({ indexes: chosen.map((i) => indexes[i]!), ...shape }));
  const waiting = [...batches];
  for (let batch = waiting.shift(); batch !== undefined; batch = waiting.shift()) {
    const { indexes, length, rows } = batch;
    if (rows > 1 && rows * length > limit) {
      waiting.unshift(...smaller(batch));
      continue;
    }
    try {
      await run(batch);
    } catch (error) {
      const isTooLarge = batchTokens !== null && rows > 1 && asTrawlError(error).details.outOfMemory;
      if (isTooLarge) {
        limit = Math.floor(rows / 2) * length;
        onSmaller(limit);
        waiting.unshift(batch);
      } else if (indexes.length === 1) failed(indexes[0]!, error);
      else waiting.unshift(...indexes.map((index) => ({ indexes: [index], length: lengths[index]!, rows: 1 })));
    }
  }
}

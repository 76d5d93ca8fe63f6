import type { EncodedBatch } from '../build/encode-passages.ts';
import { checkFinite } from './check-finite.ts';
import type { ShardRows } from './given-vectors.ts';
import { readSegments } from './read-segments.ts';

/**
 * The vectors of a shard from files that have them, from its row `from` on, given to `onBatch` in row order as an encoder's
 * would be; float16 is widened to float32, which loses nothing.
 *
 * @throws TrawlError NON_FINITE_VECTOR naming file, row and column; VECTORS_INVALID; CANCELLED; what `onBatch` throws.
 */
export async function copyVectors(
  { segments, firstRow }: ShardRows,
  dimension: number,
  options: { from: number; onBatch: (batch: EncodedBatch) => Promise<void>; signal: AbortSignal | undefined },
): Promise<void> {
  const { from, onBatch, signal } = options;
  for await (const { first, values } of readSegments(segments, dimension, { first: from, signal })) {
    checkFinite(values, { segments, dimension, first, firstRow });
    await onBatch({ vectors: values, tokens: 0, truncatedPassages: 0 });
  }
}

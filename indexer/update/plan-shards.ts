import type { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { cutPositions, type PlannedShard, shardCount } from '../building/planned-shard.ts';

/** A new shard: the part of the corpus from its first to its last new passage, and the number of new passages. */
export interface PlannedUpdateShard extends PlannedShard {
  readonly rows: number;
}

/** Distributes the new passages evenly over the smallest number of shards with at most `shardRows` rows. */
export function planShards(
  added: RowBitmap,
  shardRows: number,
  folderOf: (shard: number) => string,
): readonly PlannedUpdateShard[] {
  const size = added.count();
  if (size === 0) return [];
  const cuts = cutPositions(size, shardCount(size, shardRows));
  const places: PlannedUpdateShard[] = [];
  let [passage, begin] = [0, 0];
  for (const position of added) {
    const { first, end } = cuts[places.length]!;
    if (passage === first) begin = position;
    if (++passage < end) continue;
    const index = places.length;
    places.push({ index, folder: folderOf(index), first: begin, end: position + 1, rows: end - first });
  }
  return places;
}

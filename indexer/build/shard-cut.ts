/** Input positions [first, end) that a shard is made from. */
export interface ShardRange {
  /** From 0. */
  readonly index: number;
  readonly first: number;
  readonly end: number;
}

/** Rows of a shard where nothing else is asked for: some 3 GB of vectors of 768 dimensions. */
export const DEFAULT_SHARD_ROWS = 1_000_000;

/** Shards that `positions` are cut into so that none has more than `shardRows`; at least one. */
export function shardCount(positions: number, shardRows: number): number {
  return Math.max(1, Math.ceil(positions / shardRows));
}

/**
 * Cuts [0, positions) into runs whose lengths differ by one at most. It follows from the two numbers alone: jobs that know
 * nothing of each other agree on it. With more shards than positions some are empty.
 */
export function cutPositions(positions: number, shards: number): ShardRange[] {
  const begin = (index: number): number => Number((BigInt(positions) * BigInt(index)) / BigInt(shards));
  return Array.from({ length: shards }, (_, index) => ({ index, first: begin(index), end: begin(index + 1) }));
}

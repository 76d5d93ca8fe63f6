/** Input positions [first, end) of a shard. */
export interface ShardRange {
  /** Number of the shard, from 0. */
  readonly index: number;
  readonly first: number;
  readonly end: number;
}

/** Maximum rows per shard: about 3 GB of vectors with 768 dimensions. */
export const DEFAULT_SHARD_ROWS = 1_000_000;

/** The smallest number of shards, at least 1, with at most `shardRows` positions each. */
export function shardCount(positions: number, shardRows: number): number {
  return Math.max(1, Math.ceil(positions / shardRows));
}

/**
 * Divides [0, positions) into ranges whose lengths differ by at most one. The result depends only on the two numbers, so jobs
 * need not communicate. Some ranges are empty if there are more shards than positions.
 */
export function cutPositions(positions: number, shards: number): ShardRange[] {
  const begin = (index: number): number => Number((BigInt(positions) * BigInt(index)) / BigInt(shards));
  return Array.from({ length: shards }, (_, index) => ({ index, first: begin(index), end: begin(index + 1) }));
}

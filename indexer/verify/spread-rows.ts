import type { OpenedShard } from '../../src/search/opening/index-directory.ts';

/** Divides all rows into `sample` equal parts and chooses the middle of each; returns row numbers within the shards. */
export function spreadRows(shards: readonly OpenedShard[], sample: number): { shard: OpenedShard; rows: number[] }[] {
  const total = shards.reduce((sum, { manifest }) => sum + manifest.rows, 0);
  const count = Math.min(sample, total);
  const chosen = Array.from({ length: count }, (_, i) => Math.floor(((i + 0.5) * total) / count));
  let before = 0;
  return shards.map((shard) => {
    const first = before;
    before += shard.manifest.rows;
    return { shard, rows: chosen.filter((row) => row >= first && row < before).map((row) => row - first) };
  });
}

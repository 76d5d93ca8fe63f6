import type { ReadingRecord } from '../../src/index/manifest/build-records.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';

/**
 * How the corpus was read last: by an update, else by the build, which is recorded in the first shard. Null if neither is known:
 * the corpus came from a pipe, or a release that did not carry the record over deleted or compacted rows.
 */
export function lastReading(
  { lastUpdate }: Pick<IndexManifest, 'lastUpdate'>,
  firstShard: Pick<ShardManifest, 'input'> | undefined,
): ReadingRecord | null {
  return lastUpdate?.reading ?? firstShard?.input?.reading ?? null;
}

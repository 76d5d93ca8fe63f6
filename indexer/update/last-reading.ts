import { join } from 'node:path';
import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import { defined } from '../../src/base/objects.ts';
import type { ReadingRecord } from '../../src/index/manifest/build-records.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';

/**
 * How the corpus was read last: by an update, else by the build, which is recorded in the first shard. Null if neither is known:
 * the corpus came from a pipe.
 */
export function lastReading(
  { lastUpdate }: IndexManifest,
  firstShard: ShardManifest | undefined,
): ReadingRecord | null {
  return lastUpdate?.reading ?? firstShard?.input?.reading ?? null;
}

/** The options with which the corpus of the index in `folder` was read last. Empty if they are not known. */
export function recordedReading(folder: string, manifest: IndexManifest): CorpusOptions {
  const [first] = manifest.shards;
  const reading = lastReading(manifest, first && readShardManifest(join(folder, first.path)));
  if (reading === null) return {};
  const { format, tsvLayout, tsvIdType, skipBadLines, columns } = reading;
  return defined({ format: format ?? undefined, tsvLayout, tsvIdType, skipBadLines, columns }) as CorpusOptions;
}

/** Whether the index has exactly the corpus that its manifest names: not after an append or a removal of passages. */
export function isOfOneCorpus({ lastUpdate, tombstones }: IndexManifest): boolean {
  return lastUpdate === undefined ? tombstones === null : lastUpdate.kind === 'update';
}

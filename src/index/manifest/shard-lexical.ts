import { isSameJson } from '../../base/objects.ts';
import type { IndexManifest } from './index-manifest.ts';
import type { ShardLexical, ShardManifest } from './shard-manifest.ts';

/** The inverted indexes of a shard that the index reads; undefined if it reads none, or if the shard lacks them. */
export function shardLexical(
  { bm25, nextBm25 }: ShardManifest,
  index: Pick<IndexManifest, 'bm25'>,
): ShardLexical | undefined {
  const made = index.bm25?.made;
  return made && [bm25, nextBm25].find((lexical) => isSameJson(lexical?.made, made));
}

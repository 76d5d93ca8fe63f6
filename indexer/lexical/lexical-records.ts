import { isSameJson } from '../../src/base/objects.ts';
import type { Bm25Settings } from '../../src/engine/lexical/lexical-settings.ts';
import type { ShardLexical, ShardManifest } from '../../src/index/manifest/shard-manifest.ts';

/** Whether the inverted indexes match the wanted settings. k1 and b do not affect the files. */
export function hasFilesOf(
  lexical: ShardLexical | undefined,
  { k1, b, ...files }: Bm25Settings,
): lexical is ShardLexical {
  if (lexical === undefined) return false;
  const { k1: _k1, b: _b, ...made } = lexical.made;
  return isSameJson(made, files);
}

/** The manifest with these inverted indexes, the first of them as the current ones, and the records of their files alone. */
export function withLexical(manifest: ShardManifest, ...found: readonly (ShardLexical | undefined)[]): ShardManifest {
  const { bm25, nextBm25, ...rest } = manifest;
  const [first, second] = found.filter((lexical) => lexical !== undefined);
  const kept = new Set([...pathsOf(first), ...pathsOf(second)]);
  const dropped = new Set([...pathsOf(bm25), ...pathsOf(nextBm25)].filter((path) => !kept.has(path)));
  return {
    ...rest,
    bm25: first,
    nextBm25: second,
    files: rest.files.filter(({ path }) => !dropped.has(path)),
  };
}

/** Names of the files of inverted indexes. */
export function pathsOf(lexical: ShardLexical | undefined): string[] {
  return lexical?.indexes.map(({ path }) => path) ?? [];
}

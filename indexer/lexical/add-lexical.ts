import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Bm25Settings } from '../../src/lexical-index/lexical-settings.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../../src/manifest/index-manifest.ts';
import { withChecksum } from '../../src/manifest/manifest-checksum.ts';
import { shardLexical } from '../../src/manifest/shard-lexical.ts';
import { SHARD_MANIFEST_FILE, type ShardLexical, type ShardManifest } from '../../src/manifest/shard-manifest.ts';
import type { Kernel } from '../../src/native/kernel.ts';
import { type IndexDirectory, type OpenedShard, within } from '../../src/retrieval/index-directory.ts';
import { writeJsonDurably } from '../../src/system/durable-file.ts';
import { bm25Record } from '../building/build-settings.ts';
import { lacksTitles, noTitles } from './check-titles.ts';
import { writeDeletedTexts } from './deleted-texts.ts';
import { type MakeLexicalOptions, makeLexical } from './make-lexical.ts';

export interface AddLexicalOptions extends MakeLexicalOptions {
  /** Called with the name of each step. */
  readonly onStep: (doing: string) => void;
}

/**
 * Adds inverted indexes to an index, or replaces those made with other settings. Rows, vectors and generation do not change.
 * Until every shard has the new ones, the index keeps those it has: a shard names both, and the index manifest, which is
 * replaced last, decides. The same call resumes a stopped or killed one at the shard that it stopped at.
 *
 * @throws TrawlError CONFIG_INVALID if titles are wanted and no passage has one; DISK_FULL, OUTPUT_NOT_WRITABLE, CANCELLED, errors
 * of the index's files.
 * @returns the number of shards that got inverted indexes.
 */
export async function addLexical(
  { folder, manifest, shards, liveRows }: IndexDirectory,
  made: Bm25Settings,
  kernel: Kernel | undefined,
  options: AddLexicalOptions,
): Promise<number> {
  const next: IndexManifest = { ...manifest, bm25: { made: bm25Record(made), deleted: null } };
  const isSwitched = isDeepStrictEqual(manifest.bm25?.made, made);
  const ready: OpenedShard[] = [];
  const passageFiles = shards.map((shard) => within(shard.folder, shard.manifest.passages.path));
  if (!isSwitched && lacksTitles(made, passageFiles, options.signal)) throw noTitles();
  let count = 0;
  for (const shard of shards) {
    if (isSwitched || shardLexical(shard.manifest, next) !== undefined) {
      ready.push(shard);
      continue;
    }
    options.onStep(`inverted indexes of ${shard.folder}`);
    const current = shardLexical(shard.manifest, manifest);
    const same = [current, shard.manifest.nextBm25, shard.manifest.bm25].find((found) => hasFilesOf(found, made));
    const changed =
      same === undefined
        ? await withNext(shard, current, made, kernel, options)
        : withLexical(shard.manifest, current, { ...same, made: bm25Record(made) });
    await writeShard(shard.folder, changed);
    ready.push({ ...shard, manifest: changed });
    if (same === undefined) count++;
  }
  if (!isSwitched) {
    if (liveRows !== undefined) await writeDeletedTexts(folder, next, liveRows.complement(), options.signal);
    await writeJsonDurably(join(folder, INDEX_MANIFEST_FILE), withChecksum(next));
  }
  for (const shard of ready) {
    const { bm25, nextBm25 } = shard.manifest;
    if (nextBm25 === undefined && isDeepStrictEqual(bm25?.made, made)) continue;
    await writeShard(shard.folder, withLexical(shard.manifest, shardLexical(shard.manifest, next)!));
  }
  return count;
}

async function writeShard(folder: string, manifest: ShardManifest): Promise<void> {
  await writeJsonDurably(join(folder, SHARD_MANIFEST_FILE), withChecksum(manifest));
}

/** Whether the inverted indexes match the wanted settings. k1 and b do not affect the files. */
function hasFilesOf(lexical: ShardLexical | undefined, { k1, b, ...files }: Bm25Settings): lexical is ShardLexical {
  if (lexical === undefined) return false;
  const { k1: _k1, b: _b, ...made } = lexical.made;
  return isDeepStrictEqual(made, files);
}

/** Makes inverted indexes beside the current ones of a shard. */
async function withNext(
  { folder, manifest }: OpenedShard,
  current: ShardLexical | undefined,
  made: Bm25Settings,
  kernel: Kernel | undefined,
  options: AddLexicalOptions,
): Promise<ShardManifest> {
  const without = withLexical(manifest, current);
  // The manifest must not name files that are being replaced: those of an earlier call with yet other settings.
  if (!isDeepStrictEqual(without, manifest)) await writeShard(folder, without);
  const inUse = new Set(without.files.map(({ path }) => path));
  const passages = within(folder, manifest.passages.path);
  const { bm25, files } = await makeLexical(folder, passages, made, kernel, { ...options, inUse });
  return withLexical({ ...without, files: [...without.files, ...files] }, current, bm25);
}

/** The manifest with these inverted indexes, the first of them as the current ones, and the records of their files alone. */
function withLexical(manifest: ShardManifest, ...found: readonly (ShardLexical | undefined)[]): ShardManifest {
  const { bm25, nextBm25, ...rest } = manifest;
  const [first, second] = found.filter((lexical) => lexical !== undefined);
  const pathsOf = (lexical: ShardLexical | undefined): string[] => lexical?.indexes.map(({ path }) => path) ?? [];
  const kept = new Set([...pathsOf(first), ...pathsOf(second)]);
  const dropped = new Set([...pathsOf(bm25), ...pathsOf(nextBm25)].filter((path) => !kept.has(path)));
  return {
    ...rest,
    ...(first === undefined ? {} : { bm25: first }),
    ...(second === undefined ? {} : { nextBm25: second }),
    files: rest.files.filter(({ path }) => !dropped.has(path)),
  };
}

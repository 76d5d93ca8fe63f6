import { rm } from 'node:fs/promises';
import { isSameJson } from '../../src/base/objects.ts';
import type { Bm25Settings } from '../../src/engine/lexical/lexical-settings.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { shardLexical } from '../../src/index/manifest/shard-lexical.ts';
import type { ShardLexical, ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { writeIndexManifest, writeShardManifest } from '../../src/index/manifest/write-manifest.ts';
import { type IndexDirectory, type OpenedShard, within } from '../../src/search/opening/index-directory.ts';
import { bm25Record } from '../building/build-settings.ts';
import { lacksTitles, noTitles } from './check-titles.ts';
import { areIntact, filesOfOtherPassages, isIntact } from './damaged-lexical.ts';
import { writeDeletedTexts } from './deleted-texts.ts';
import { hasFilesOf, pathsOf, withLexical } from './lexical-records.ts';
import { type MakeLexicalOptions, makeLexical } from './make-lexical.ts';

export interface AddLexicalOptions extends MakeLexicalOptions {
  /** Called with the name of each step. */
  readonly onStep: (doing: string) => void;
}

type Shard = Pick<OpenedShard, 'folder' | 'manifest'>;

/**
 * Adds inverted indexes to an index, replaces those made with other settings, and makes missing and damaged ones again. Rows,
 * vectors and generation do not change. Until every shard has the new ones, the index keeps those it has: a shard names both, and
 * the index manifest, which is replaced last, decides. The same call resumes a stopped or killed one at the shard that it stopped at.
 *
 * @param directory may lack files of inverted indexes.
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
  const { signal } = options;
  const isSwitched = isSameJson(manifest.bm25?.made, made);
  const passageFiles = shards.map((shard) => within(shard.folder, shard.manifest.passages.path));
  if (!isSwitched && lacksTitles(made, passageFiles, signal)) throw noTitles();
  const foreign = isSwitched ? await filesOfOtherPassages(manifest, shards, kernel, signal) : new Set<string>();
  const isUsable = async (shard: Shard, lexical: ShardLexical): Promise<boolean> =>
    !pathsOf(lexical).some((path) => foreign.has(within(shard.folder, path))) && isIntact(shard, lexical, signal);
  const next: IndexManifest = { ...manifest, bm25: { made: bm25Record(made), deleted: null } };
  const ready: OpenedShard[] = [];
  let count = 0;
  for (const shard of shards) {
    const current = shardLexical(shard.manifest, manifest);
    const { changed, isMade } = await withWanted(shard, made, { current, isSwitched, kernel, isUsable, options });
    if (!isSameJson(changed, shard.manifest)) await writeShardManifest(shard.folder, changed);
    ready.push({ ...shard, manifest: changed });
    if (isMade) count++;
  }
  const { deleted } = manifest.bm25 ?? {};
  const hasDeletedTexts =
    liveRows === undefined || (deleted?.length === made.fields.length && (await areIntact(folder, deleted, signal)));
  if (!isSwitched || !hasDeletedTexts) {
    if (liveRows !== undefined) await writeDeletedTexts(folder, next, liveRows.complement(), signal);
    await writeIndexManifest(folder, next);
  }
  for (const shard of ready) {
    const { bm25, nextBm25 } = shard.manifest;
    if (nextBm25 === undefined && isSameJson(bm25?.made, made)) continue;
    await writeShardManifest(shard.folder, withLexical(shard.manifest, shardLexical(shard.manifest, next)!));
  }
  return count;
}

/**
 * Gives a complete shard that no index names yet the inverted indexes that its index has now, in place of those it has. Does
 * nothing if it has them.
 *
 * @throws TrawlError as `addLexical`.
 */
export async function replaceLexical(
  shard: Shard,
  made: Bm25Settings,
  kernel: Kernel | undefined,
  options: MakeLexicalOptions,
): Promise<ShardManifest> {
  const { folder, manifest } = shard;
  if (isSameJson(manifest.bm25?.made, made)) return manifest;
  const isUsable = (lexical: Shard, found: ShardLexical): Promise<boolean> => isIntact(lexical, found, options.signal);
  const making = { current: undefined, isSwitched: true, kernel, isUsable, options };
  const { changed } = await withWanted(shard, made, making);
  await writeShardManifest(folder, changed);
  const kept = new Set(pathsOf(changed.bm25));
  for (const path of pathsOf(manifest.bm25)) if (!kept.has(path)) await rm(within(folder, path), { force: true });
  return changed;
}

interface Making {
  /** The inverted indexes of the shard that its index reads until its manifest is replaced. */
  readonly current: ShardLexical | undefined;
  /** Whether the manifest of the index names the wanted settings already, so that the shard may drop the current ones. */
  readonly isSwitched: boolean;
  readonly kernel: Kernel | undefined;
  /** Whether inverted indexes that a shard names can be used, and are not damaged. */
  readonly isUsable: (shard: Shard, lexical: ShardLexical) => Promise<boolean>;
  readonly options: MakeLexicalOptions & Partial<Pick<AddLexicalOptions, 'onStep'>>;
}

/** The manifest of a shard with the wanted inverted indexes, which are made unless the shard has them. */
async function withWanted(
  shard: Shard,
  made: Bm25Settings,
  { current, isSwitched, kernel, isUsable, options }: Making,
): Promise<{ changed: ShardManifest; isMade: boolean }> {
  const kept = isSwitched ? undefined : current;
  const { bm25, nextBm25 } = shard.manifest;
  for (const found of new Set([current, nextBm25, bm25])) {
    if (!hasFilesOf(found, made) || !(await isUsable(shard, found))) continue;
    const wanted = { ...found, made: bm25Record(made) };
    return { changed: withLexical(shard.manifest, kept, wanted), isMade: false };
  }
  options.onStep?.(`inverted indexes of ${shard.folder}`);
  const { beside, bm25: wanted } = await makeBeside(shard, current, made, kernel, options);
  return { changed: withLexical(beside, kept, wanted), isMade: true };
}

/** Makes inverted indexes beside the current ones of a shard. Returns its manifest with the records of both files. */
async function makeBeside(
  { folder, manifest }: Shard,
  current: ShardLexical | undefined,
  made: Bm25Settings,
  kernel: Kernel | undefined,
  options: MakeLexicalOptions,
): Promise<{ beside: ShardManifest; bm25: ShardLexical }> {
  // The manifest must not name files that are being replaced: those of an earlier call with yet other settings.
  const without = withLexical(manifest, current);
  if (!isSameJson(without, manifest)) await writeShardManifest(folder, without);
  const inUse = new Set(without.files.map(({ path }) => path));
  const passages = within(folder, manifest.passages.path);
  const { bm25, files } = await makeLexical(folder, passages, made, kernel, { ...options, inUse });
  return { beside: { ...without, files: [...without.files, ...files] }, bm25 };
}

import { existsSync } from 'node:fs';
import { isSameJson } from '../../src/base/objects.ts';
import { sha256OfFile } from '../../src/base/system/file-checksum.ts';
import type { Bm25Settings } from '../../src/engine/lexical/lexical-settings.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import type { FileRecord } from '../../src/index/manifest/schemas.ts';
import { type ShardLexical, type ShardManifest, shardLexical } from '../../src/index/manifest/shard-manifest.ts';
import { writeIndexManifest, writeShardManifest } from '../../src/index/manifest/write-manifest.ts';
import { type IndexDirectory, type OpenedShard, within } from '../../src/search/opening/index-directory.ts';
import { bm25Record } from '../building/build-settings.ts';
import { lexicalHeaderProblems, lexicalOfShard } from '../verify/verify-lexical.ts';
import { verifyWords } from '../verify/verify-words.ts';
import { lacksTitles, noTitles } from './check-titles.ts';
import { writeDeletedTexts } from './deleted-texts.ts';
import { hasFilesOf, lexicalPaths, removeUnusedLexical, withLexical } from './lexical-records.ts';
import { type MakeLexicalOptions, makeLexical } from './make-lexical.ts';

/** Passages of the index that are analysed again. */
const SAMPLE = 1_000;

interface AddLexicalOptions extends MakeLexicalOptions {
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
  const foreign = new Set<string>();
  if (isSwitched && kernel !== undefined) {
    // Files that were written for other passages may have the right checksums.
    const { problems } = await verifyWords(manifest, shards, kernel, { sample: SAMPLE, signal });
    for (const { file } of problems) foreign.add(file);
  }
  const next: IndexManifest = { ...manifest, bm25: { made: bm25Record(made), deleted: null } };
  const ready: OpenedShard[] = [];
  let count = 0;
  for (const shard of shards) {
    const current = shardLexical(shard.manifest, manifest);
    const { changed, isMade } = await withWanted(shard, made, kernel, { ...options, current, isSwitched, foreign });
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
  const { changed } = await withWanted(shard, made, kernel, { ...options, isSwitched: true });
  await writeShardManifest(folder, changed);
  await removeUnusedLexical(folder, [manifest.bm25], changed.bm25);
  return changed;
}

interface WantedOptions extends MakeLexicalOptions {
  /** The inverted indexes of the shard that its index reads until its manifest is replaced. */
  readonly current?: ShardLexical;
  /** Whether the manifest of the index names the wanted settings already, so that the shard may drop the current ones. */
  readonly isSwitched: boolean;
  /** Paths of inverted indexes that were made of other passages. */
  readonly foreign?: ReadonlySet<string>;
  readonly onStep?: (doing: string) => void;
}

/** The manifest of a shard with the wanted inverted indexes, which are made unless the shard has them. */
async function withWanted(
  shard: Shard,
  made: Bm25Settings,
  kernel: Kernel | undefined,
  { current, isSwitched, foreign, onStep, onRows, signal }: WantedOptions,
): Promise<{ changed: ShardManifest; isMade: boolean }> {
  const kept = isSwitched ? undefined : current;
  const { folder, manifest } = shard;
  for (const found of new Set([current, manifest.nextBm25, manifest.bm25])) {
    if (!hasFilesOf(found, made) || lexicalPaths(found).some((path) => foreign?.has(within(folder, path)))) continue;
    if (!(await isIntact(shard, found, signal))) continue;
    return { changed: withLexical(manifest, kept, { ...found, made: bm25Record(made) }), isMade: false };
  }
  onStep?.(`inverted indexes of ${folder}`);
  // The manifest must not name files that are being replaced, such as files of an earlier call with other settings.
  const without = withLexical(manifest, current);
  if (!isSameJson(without, manifest)) await writeShardManifest(folder, without);
  const inUse = new Set(without.files.map(({ path }) => path));
  const passages = within(folder, manifest.passages.path);
  const { bm25: wanted, files } = await makeLexical(folder, passages, made, kernel, { onRows, inUse, signal });
  return { changed: withLexical({ ...without, files: [...without.files, ...files] }, kept, wanted), isMade: true };
}

/**
 * Whether the files of these inverted indexes of a shard exist, with the checksums and counts of its manifest.
 *
 * @throws TrawlError CANCELLED; errors of reading.
 */
async function isIntact(
  { folder, manifest }: Shard,
  lexical: ShardLexical,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const paths = new Set(lexicalPaths(lexical));
  const files = manifest.files.filter(({ path }) => paths.has(path));
  if (!(await areIntact(folder, files, signal))) return false;
  const absolute = new Set([...paths].map((path) => within(folder, path)));
  return lexicalOfShard(folder, manifest).every(
    (named) => !absolute.has(named.path) || lexicalHeaderProblems(named).length === 0,
  );
}

async function areIntact(
  folder: string,
  files: readonly FileRecord[],
  signal: AbortSignal | undefined,
): Promise<boolean> {
  for (const { path, sha256 } of files) {
    const file = within(folder, path);
    if (!existsSync(file) || (await sha256OfFile(file, signal)) !== sha256) return false;
  }
  return true;
}

import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Bm25Settings } from '../../src/lexical-index/lexical-settings.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../../src/manifest/index-manifest.ts';
import { withChecksum } from '../../src/manifest/manifest-checksum.ts';
import { SHARD_MANIFEST_FILE, type ShardManifest } from '../../src/manifest/shard-manifest.ts';
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
 * The index manifest names the inverted indexes only when every shard has them; until then the index has no BM25.
 *
 * @returns the number of shards that got inverted indexes.
 * @throws TrawlError CONFIG_INVALID if titles are wanted and no passage has one; DISK_FULL, OUTPUT_NOT_WRITABLE, CANCELLED, errors of the index's files.
 */
export async function addLexical(
  { folder, manifest, shards, liveRows }: IndexDirectory,
  made: Bm25Settings,
  kernel: Kernel,
  options: AddLexicalOptions,
): Promise<number> {
  if (isDeepStrictEqual(manifest.bm25?.made, made)) return 0;
  const passageFiles = shards.map((shard) => within(shard.folder, shard.manifest.passages.path));
  if (lacksTitles(made, passageFiles, options.signal)) throw noTitles();
  const { bm25, ...without } = manifest;
  if (bm25 !== undefined) await writeManifest(folder, without);
  let count = 0;
  for (const shard of shards) {
    if (isDeepStrictEqual(shard.manifest.bm25?.made, made)) continue;
    const isSame = hasFilesOf(shard.manifest, made);
    options.onStep(`inverted indexes of ${shard.folder}`);
    const changed = isSame ? withSettings(shard.manifest, made) : await withLexical(shard, made, kernel, options);
    await writeJsonDurably(join(shard.folder, SHARD_MANIFEST_FILE), withChecksum(changed));
    if (!isSame) count++;
  }
  const next: IndexManifest = { ...without, bm25: { made: bm25Record(made), deleted: null } };
  if (liveRows !== undefined) await writeDeletedTexts(folder, next, liveRows.complement(), options.signal);
  await writeManifest(folder, next);
  return count;
}

async function writeManifest(folder: string, manifest: IndexManifest): Promise<void> {
  await writeJsonDurably(join(folder, INDEX_MANIFEST_FILE), withChecksum(manifest));
}

/** Whether the shard's inverted index files match the wanted settings. k1 and b do not affect the files. */
function hasFilesOf({ bm25 }: ShardManifest, { k1, b, ...files }: Bm25Settings): boolean {
  if (bm25 === undefined) return false;
  const { k1: _k1, b: _b, ...made } = bm25.made;
  return isDeepStrictEqual(made, files);
}

function withSettings(manifest: ShardManifest, made: Bm25Settings): ShardManifest {
  return { ...manifest, bm25: { ...manifest.bm25!, made: bm25Record(made) } };
}

async function withLexical(
  { folder, manifest }: OpenedShard,
  made: Bm25Settings,
  kernel: Kernel,
  options: AddLexicalOptions,
): Promise<ShardManifest> {
  const without = withoutLexical(manifest);
  // The old manifest must not name files that are being replaced.
  if (manifest.bm25 !== undefined) await writeJsonDurably(join(folder, SHARD_MANIFEST_FILE), withChecksum(without));
  const { bm25, files } = await makeLexical(folder, within(folder, manifest.passages.path), made, kernel, options);
  return { ...without, bm25, files: [...without.files, ...files] };
}

function withoutLexical({ bm25, ...manifest }: ShardManifest): ShardManifest {
  const paths = new Set(bm25?.indexes.map(({ path }) => path));
  return { ...manifest, files: manifest.files.filter(({ path }) => !paths.has(path)) };
}

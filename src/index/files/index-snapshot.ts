import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isNodeError, TrawlError } from '../../base/errors.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../manifest/index-manifest.ts';
import { parseIndexManifest, parseShardManifest } from '../manifest/read-manifest.ts';
import { SHARD_MANIFEST_FILE, type ShardManifest } from '../manifest/shard-manifest.ts';

/** A file of an index. */
export interface IndexFile {
  /** Relative to the index, with forward slashes. */
  readonly path: string;
  /** Null for a passage file, whose size the manifest does not have. */
  readonly bytes: number | null;
  /** Of the file; null for a passage file. */
  readonly sha256: string | null;
  /** The content hash of a passage file. */
  readonly passages?: string;
}

/** What the manifests of an index say about its files, at one moment. */
export interface IndexSnapshot {
  /** Changes with any byte of the manifests. The generation alone does not say which codes and inverted indexes there are. */
  readonly id: string;
  readonly manifest: IndexManifest;
  /** By the path of the shard in the index. */
  readonly shards: ReadonlyMap<string, ShardManifest>;
  /** The texts of the manifests, by path. The index's manifest is last, because a folder that has it is a complete index. */
  readonly texts: ReadonlyMap<string, Buffer>;
  /** The other files. */
  readonly files: readonly IndexFile[];
  /** Paths of vector files that the index uses where they are, relative to the index or absolute. */
  readonly adopted: readonly string[];
}

/** A manifest is at most this large. With a corpus of ten thousand files it has about 2 MB. */
export const MAX_MANIFEST_BYTES = 64 * 1024 * 1024;

/**
 * Reads the manifests of an index and lists its files.
 *
 * @param where the index, for messages.
 * @param read gives the text of a manifest by its path.
 * @throws TrawlError INDEX_MANIFEST_INVALID, also for a path that leads out of the index; INDEX_FILE_FOREIGN,
 * INDEX_VERSION_UNSUPPORTED; errors of `read`.
 */
export async function readSnapshot(where: string, read: (path: string) => Promise<Buffer>): Promise<IndexSnapshot> {
  const texts = new Map<string, Buffer>();
  const shards = new Map<string, ShardManifest>();
  const files: IndexFile[] = [];
  const adopted = new Set<string>();
  const index = await read(INDEX_MANIFEST_FILE);
  const manifest = parseIndexManifest(`${where}/${INDEX_MANIFEST_FILE}`, index.toString('utf8'));
  const safe = (path: string): string => checkPath(where, path);
  for (const { path, generation } of manifest.shards) {
    const file = `${safe(path)}/${SHARD_MANIFEST_FILE}`;
    const text = await read(file);
    const shard = parseShardManifest(`${where}/${file}`, text.toString('utf8'));
    if (shard.generation !== generation) {
      throw new TrawlError(
        'INDEX_FILE_FOREIGN',
        `${where}/${file}: its generation is ${shard.generation}; the index expects ${generation}.`,
      );
    }
    texts.set(file, text);
    shards.set(path, shard);
    for (const each of shard.files) files.push({ ...each, path: safe(`${path}/${each.path}`) });
    files.push({
      path: safe(`${path}/${shard.passages.path}`),
      bytes: null,
      sha256: null,
      passages: shard.passages.sha256,
    });
    for (const segment of shard.vectors) {
      if (segment.adopted === undefined) continue;
      adopted.add(segment.path.startsWith('/') ? segment.path : `${path}/${segment.path}`);
    }
  }
  for (const each of [manifest.tombstones, ...(manifest.bm25?.deleted ?? [])]) {
    if (each !== null) files.push({ path: safe(each.path), bytes: each.bytes, sha256: each.sha256 });
  }
  texts.set(INDEX_MANIFEST_FILE, index);
  const paths = new Set(texts.keys());
  for (const { path } of files) {
    if (paths.has(path)) throw invalid(where, `they name ${path} twice`);
    paths.add(path);
  }
  return { id: idOf(texts), manifest, shards, texts, files, adopted: [...adopted] };
}

/** A path that cannot leave its folder on any system. */
const PATH = /^[^/\\:\0]+(?:\/[^/\\:\0]+)*$/;

function checkPath(where: string, path: string): string {
  const parts = path.split('/');
  if (PATH.test(path) && !parts.includes('..') && !parts.includes('.')) return path;
  throw invalid(where, `they name the path ${JSON.stringify(path.slice(0, 200))}, which is not inside the index`);
}

function invalid(where: string, reason: string): TrawlError {
  return new TrawlError('INDEX_MANIFEST_INVALID', `${where}: its manifests cannot be used: ${reason}.`);
}

function idOf(texts: ReadonlyMap<string, Buffer>): string {
  const hash = createHash('sha256');
  for (const [path, text] of texts) hash.update(`${path}\0${text.length}\0`).update(text);
  return hash.digest('hex').slice(0, 32);
}

/** What the manifests in a folder say. Their files need not exist. @throws TrawlError INDEX_NOT_FOUND, or an error of `readSnapshot`. */
export function folderSnapshot(folder: string): Promise<IndexSnapshot> {
  return readSnapshot(folder, async (path) => {
    try {
      return await readFile(join(folder, path));
    } catch (cause) {
      if (!isNodeError(cause)) throw cause;
      throw new TrawlError(
        'INDEX_NOT_FOUND',
        `${join(folder, path)} cannot be read (${cause.code}). Check the path, or build the index again.`,
        { cause },
      );
    }
  });
}

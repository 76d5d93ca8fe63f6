import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { TrawlError } from '../../base/errors.ts';
import { memoryLimit } from '../../base/system/memory.ts';
import {
  type ReadOptions,
  readIntoPageCache,
  type SizedFile,
  sizedFiles,
  totalBytes,
} from '../../base/system/page-cache.ts';
import type { ColumnSource } from '../../engine/columns/row-filters.ts';
import type { LexicalSource } from '../../engine/lexical/lexical-index.ts';
import type { LexicalField } from '../../engine/lexical/lexical-settings.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import type { IndexSource } from '../../engine/vectors/vector-index.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest, vectorSpace } from '../../index/manifest/index-manifest.ts';
import { readIndexManifest, readShardManifest } from '../../index/manifest/read-manifest.ts';
import { SHARD_MANIFEST_FILE, type ShardManifest, shardLexical } from '../../index/manifest/shard-manifest.ts';
import type { PassageShard } from '../../index/passages/passage-protocol.ts';
import { checkBelongs, checkFile, checkPassages, checkVectors } from './shard-checks.ts';

export interface OpenedShard {
  /** Absolute path. */
  readonly folder: string;
  readonly firstRow: number;
  readonly manifest: ShardManifest;
}

/** An index directory whose files exist with the right sizes and headers. */
export interface IndexDirectory {
  /** Absolute path. */
  readonly folder: string;
  readonly manifest: IndexManifest;
  readonly shards: readonly OpenedShard[];
  /** Rows that are not deleted; undefined if no row is deleted. */
  readonly liveRows: RowBitmap | undefined;
  /** The vectors, for an engine; undefined for an index without vectors. */
  readonly source: IndexSource | undefined;
  /** The inverted indexes by field; empty if there are none. */
  readonly lexical: ReadonlyMap<LexicalField, LexicalSource>;
  /** The columns for filters; empty if there are none. */
  readonly columns: readonly ColumnSource[];
  readonly passages: readonly PassageShard[];
}

interface IndexDirectoryOptions {
  /** Whether the inverted indexes must exist and have the right sizes. False for making them again. Default: true. */
  readonly checkLexical?: boolean;
}

/**
 * Reads the manifests and checks that every file exists and has the right size and header. `trawl verify` also compares the
 * checksums. Another process may replace the manifests meanwhile.
 *
 * @throws TrawlError INDEX_NOT_FOUND, INDEX_MANIFEST_INVALID, INDEX_VERSION_UNSUPPORTED, INDEX_FILE_MISSING,
 * INDEX_FILE_TRUNCATED or INDEX_FILE_FOREIGN; the message names the file.
 */
export function openIndexDirectory(path: string, options: IndexDirectoryOptions = {}): IndexDirectory {
  const folder = resolve(path);
  return openUnchanged(folder, () => openFolder(folder, options));
}

function openFolder(folder: string, { checkLexical = true }: IndexDirectoryOptions): IndexDirectory {
  const manifest = readIndexManifest(folder);
  const shards = manifest.shards.map((entry) => openShard(folder, manifest, entry, { checkLexical }));
  const space = vectorSpace(manifest);
  if (space !== undefined && space.model.dimension !== space.dimension) {
    throw new TrawlError(
      'INDEX_MANIFEST_INVALID',
      `${folder}: the vectors have ${manifest.dimension} dimensions, but the model has ${space.model.dimension}. Build the index again.`,
    );
  }
  const liveRows = manifest.tombstones === null ? undefined : readLiveRows(folder, manifest);
  return {
    folder,
    manifest,
    shards,
    liveRows,
    source: space && {
      dimension: space.dimension,
      metric: space.metric,
      rows: manifest.rows,
      shards: shards.map((shard) => ({
        firstRow: shard.firstRow,
        rows: shard.manifest.rows,
        segments: shard.manifest.vectors.map((segment) => ({ ...segment, path: within(shard.folder, segment.path) })),
        codes: codesPath(shard),
        prefilter: prefilterPath(shard) ?? undefined,
      })),
      liveRows,
    },
    lexical: lexicalSources({ folder, manifest, shards, liveRows }, checkLexical),
    columns: columnSources(manifest, shards),
    passages: shards.map((shard) => ({
      path: within(shard.folder, shard.manifest.passages.path),
      firstRow: shard.firstRow,
      rows: shard.manifest.rows,
    })),
  };
}

/** `checkBelongs` made sure that every shard has the columns. */
function columnSources(manifest: IndexManifest, shards: readonly OpenedShard[]): ColumnSource[] {
  return (manifest.columns ?? []).map(({ name, type }) => ({
    name,
    type,
    paths: shards.map(({ folder, manifest: { columns } }) =>
      within(folder, columns!.find((column) => column.name === name && column.type === type)!.path),
    ),
  }));
}

function lexicalSources(
  { folder, manifest, shards, liveRows }: Pick<IndexDirectory, 'folder' | 'manifest' | 'shards' | 'liveRows'>,
  check: boolean,
): Map<LexicalField, LexicalSource> {
  const sources = new Map<LexicalField, LexicalSource>();
  const { bm25 } = manifest;
  if (bm25 === undefined) return sources;
  const { fields, analyser, stemmer } = bm25.made;
  for (const field of fields) {
    const deleted = bm25.deleted?.find((file) => file.field === field);
    if (check && deleted !== undefined) checkFile(within(folder, deleted.path), deleted.bytes);
    sources.set(field, {
      analyser,
      stemmer,
      shards: shards.map((shard) => ({
        path: within(
          shard.folder,
          shardLexical(shard.manifest, manifest)!.indexes.find((index) => index.field === field)!.path,
        ),
        firstRow: shard.firstRow,
        rows: shard.manifest.rows,
      })),
      deleted: deleted && within(folder, deleted.path),
      liveRows,
    });
  }
  return sources;
}

/**
 * Reads a shard's manifest and checks that its files exist and have the right sizes and headers.
 *
 * @throws TrawlError as `openIndexDirectory`.
 */
export function openShard(
  folder: string,
  manifest: IndexManifest,
  entry: IndexManifest['shards'][number],
  { checkLexical = true }: IndexDirectoryOptions = {},
): OpenedShard {
  const named = within(folder, entry.path);
  // Relative paths in the shard's manifest start at the real folder, not at a symbolic link to it.
  const shardFolder = existsSync(named) ? realpathSync(named) : named;
  const shard = readShardManifest(shardFolder);
  checkBelongs(shardFolder, shard, entry, manifest);
  const lexical = new Set(
    [shard.bm25, shard.nextBm25].flatMap((found) => found?.indexes.map((index) => index.path) ?? []),
  );
  for (const { path, bytes } of shard.files) {
    if (checkLexical || !lexical.has(path)) checkFile(within(shardFolder, path), bytes);
  }
  const segments = shard.vectors.map((segment) => ({ ...segment, path: within(shardFolder, segment.path) }));
  checkVectors(shardFolder, shard, segments);
  checkPassages(within(shardFolder, shard.passages.path), shard);
  return { folder: shardFolder, firstRow: entry.firstRow, manifest: shard };
}

/** Absolute path of the shard's codes; undefined if it has none. */
function codesPath({ folder, manifest: { codes } }: OpenedShard): string | undefined {
  return codes === null ? undefined : within(folder, codes.path);
}

/** Absolute path of the shard's prefilter; null if it has no prefilter or no codes. */
export function prefilterPath({ folder, manifest: { codes, prefilter } }: OpenedShard): string | null {
  return codes === null || prefilter?.path == null ? null : within(folder, prefilter.path);
}

/** Bytes of a shard that every search reads in full and that should stay in memory: its prefilter, else its codes, else its vectors. */
export function residentBytes(shard: OpenedShard): number {
  const path = prefilterPath(shard) ?? codesPath(shard);
  if (path === undefined) return shard.manifest.vectors.reduce((sum, { bytes }) => sum + bytes, 0);
  return statSync(path).size;
}

/** Absolute path of a file that a manifest names. The paths of adopted files may be absolute already. */
export function within(folder: string, path: string): string {
  return isAbsolute(path) ? path : join(folder, path);
}

/** Reads the bitmap of deleted rows and inverts it. @throws TrawlError INDEX_FILE_… when its size does not match the index. */
export function readLiveRows(folder: string, manifest: IndexManifest): RowBitmap {
  const record = manifest.tombstones!;
  const path = within(folder, record.path);
  checkFile(path, record.bytes);
  const deleted = readFileSync(path);
  if (deleted.length !== Math.ceil(manifest.rows / 8)) {
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${path}: has ${deleted.length} bytes, but a bitmap of ${manifest.rows} rows has ${Math.ceil(manifest.rows / 8)}. Copy it again.`,
    );
  }
  const live = Uint8Array.from(deleted, (byte) => ~byte & 0xff);
  return new RowBitmap(manifest.rows, live);
}

/** Number of times that an index may change while it is opened. */
const MAX_CHANGES = 10;

/**
 * Opens an index that another process may change: `trawl optimize` replaces the manifests one after another and then removes the
 * files that they no longer name, so what was read first may not fit what was read last. If `open` throws or its promise is rejected,
 * it is called again as long as the manifests change.
 *
 * @throws the last error of `open`.
 */
export function openUnchanged<T>(folder: string, open: () => T): T {
  let seen: string | undefined;
  let changes = 0;
  const attempt = (): T => {
    try {
      const opened = open();
      return opened instanceof Promise ? (opened.catch(openAgain) as T) : opened;
    } catch (error) {
      return openAgain(error);
    }
  };
  const openAgain = (error: unknown): T => {
    if (changes++ === MAX_CHANGES || !(error instanceof TrawlError) || !error.code.startsWith('INDEX_')) throw error;
    const found = manifestTexts(folder);
    if (found === undefined || found === seen) throw error;
    seen = found;
    return attempt();
  };
  return attempt();
}

/** The manifests of an index and its shards; undefined if one of them cannot be read. */
function manifestTexts(folder: string): string | undefined {
  try {
    const shards = readIndexManifest(folder).shards.map(({ path }) => join(resolve(folder, path), SHARD_MANIFEST_FILE));
    return [join(folder, INDEX_MANIFEST_FILE), ...shards].map((path) => readFileSync(path, 'utf8')).join('\n');
  } catch {
    return undefined;
  }
}

/**
 * Reads prefilters and codes once, so that they are in the page cache before the first query. If they are larger than half of
 * the memory that this process may use, reads only the resident bytes: prefilters, and the codes of shards without a prefilter.
 */
export async function readAhead(directory: IndexDirectory, options: ReadOptions = {}): Promise<void> {
  await readIntoPageCache(await filesToRead(directory, memoryLimit() / 2), options);
}

/** Codes of shards with a prefilter come first: the files read last stay in the page cache longest. */
async function filesToRead({ shards }: IndexDirectory, budget: number): Promise<SizedFile[]> {
  const prefilteredCodes = await sizedFiles(
    shards.flatMap((shard) => (prefilterPath(shard) === null ? [] : (codesPath(shard) ?? []))),
  );
  const resident = await sizedFiles(shards.flatMap((shard) => prefilterPath(shard) ?? codesPath(shard) ?? []));
  const all = [...prefilteredCodes, ...resident];
  return totalBytes(all) <= budget ? all : resident;
}

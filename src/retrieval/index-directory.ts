import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { TrawlError } from '../errors.ts';
import type { IndexManifest } from '../manifest/index-manifest.ts';
import { readIndexManifest, readShardManifest } from '../manifest/read-manifest.ts';
import type { ShardManifest } from '../manifest/shard-manifest.ts';
import { PassageFile } from '../passages/passage-file.ts';
import type { PassageShard } from '../passages/passage-protocol.ts';
import { decodeFlatHeader, FAISS_HEADER_BYTES, faissMetric } from '../vector-index/faiss-format.ts';
import { decodeFp16Header, FAISS_FP16_HEADER_BYTES } from '../vector-index/faiss-fp16-format.ts';
import type { IndexSource } from '../vector-index/index-source.ts';
import { RowBitmap } from '../vector-index/row-bitmap.ts';
import { sampleChecksum } from '../vector-index/sample-checksum.ts';

export interface OpenedShard {
  /** Absolute folder. */
  readonly folder: string;
  readonly firstRow: number;
  readonly manifest: ShardManifest;
}

/** An index directory whose files are all there with the sizes and headers they must have. */
export interface IndexDirectory {
  /** Absolute. */
  readonly folder: string;
  readonly manifest: IndexManifest;
  readonly shards: readonly OpenedShard[];
  /** Where the vectors lie, for an engine. */
  readonly source: IndexSource;
  readonly passages: readonly PassageShard[];
}

/**
 * Reads the manifests and looks at every file's presence, size and header. It reads no content: checksums are for
 * `trawl verify`.
 *
 * @throws TrawlError INDEX_NOT_FOUND, INDEX_MANIFEST_INVALID, INDEX_VERSION_UNSUPPORTED, INDEX_FILE_MISSING,
 * INDEX_FILE_TRUNCATED or INDEX_FILE_FOREIGN, always naming the file.
 */
export function openIndexDirectory(path: string): IndexDirectory {
  const folder = resolve(path);
  const manifest = readIndexManifest(folder);
  const shards = manifest.shards.map((entry) => openShard(folder, manifest, entry));
  if (manifest.model.dimension !== manifest.dimension) {
    throw new TrawlError(
      'INDEX_MANIFEST_INVALID',
      `${folder}: vectors of ${manifest.dimension} dimensions with a model of ${manifest.model.dimension}.`,
    );
  }
  const alive = manifest.tombstones === null ? undefined : readAlive(folder, manifest);
  return {
    folder,
    manifest,
    shards,
    source: {
      dimension: manifest.dimension,
      metric: manifest.metric,
      rows: manifest.rows,
      shards: shards.map((shard) => ({
        firstRow: shard.firstRow,
        rows: shard.manifest.rows,
        segments: shard.manifest.vectors.map((segment) => ({ ...segment, path: within(shard.folder, segment.path) })),
        ...(shard.manifest.codes === null ? {} : { codes: within(shard.folder, shard.manifest.codes.path) }),
        ...(screenPath(shard) === null ? {} : { screen: screenPath(shard)! }),
      })),
      ...(alive === undefined ? {} : { alive }),
    },
    passages: shards.map((shard) => ({
      path: within(shard.folder, shard.manifest.passages.path),
      firstRow: shard.firstRow,
      rows: shard.manifest.rows,
    })),
  };
}

/**
 * Reads a shard's manifest and looks at its files' presence, size and header.
 *
 * @throws TrawlError as `openIndexDirectory`.
 */
export function openShard(
  folder: string,
  manifest: IndexManifest,
  entry: IndexManifest['shards'][number],
): OpenedShard {
  const named = within(folder, entry.path);
  // Paths out of it are relative to where it lies, whichever links lead there.
  const shardFolder = existsSync(named) ? realpathSync(named) : named;
  const shard = readShardManifest(shardFolder);
  checkBelongs(shardFolder, shard, entry, manifest);
  for (const file of shard.files) checkFile(within(shardFolder, file.path), file.bytes);
  checkVectors(shardFolder, shard);
  checkPassages(shardFolder, shard);
  return { folder: shardFolder, firstRow: entry.firstRow, manifest: shard };
}

/** Absolute path of the shard's screen, null where it has none. Codes have to be there too: it is a screen before them. */
export function screenPath({ folder, manifest }: OpenedShard): string | null {
  const path = manifest.codes === null ? null : (manifest.screen?.path ?? null);
  return path === null ? null : within(folder, path);
}

export function within(folder: string, path: string): string {
  return isAbsolute(path) ? path : join(folder, path);
}

function checkBelongs(
  folder: string,
  shard: ShardManifest,
  entry: IndexManifest['shards'][number],
  index: IndexManifest,
): void {
  const differences = [
    shard.generation === entry.generation
      ? ''
      : `generation ${shard.generation} where the index names ${entry.generation}`,
    shard.rows === entry.rows ? '' : `${shard.rows} rows where the index names ${entry.rows}`,
    shard.dimension === index.dimension ? '' : `dimension ${shard.dimension} in an index of ${index.dimension}`,
    shard.metric === index.metric ? '' : `metric ${shard.metric} in an index of ${index.metric}`,
    isDeepStrictEqual(shard.model, index.model)
      ? ''
      : `its model (${shard.model.name}) is not that of the index (${index.model.name}) in every field`,
  ].filter((difference) => difference !== '');
  if (differences.length > 0) {
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${folder}: the shard belongs to another index: ${differences.join('; ')}.`,
    );
  }
}

function checkFile(path: string, bytes: number): void {
  const found = fileSize(path);
  if (found !== bytes) {
    throw new TrawlError(
      'INDEX_FILE_TRUNCATED',
      `${path}: ${found} bytes where the manifest says ${bytes}. Copy it again or build the index again.`,
    );
  }
}

/** The file carries its content hash: one of another index is told without reading the passages. */
function checkPassages(folder: string, shard: ShardManifest): void {
  const path = within(folder, shard.passages.path);
  const file = new PassageFile(path);
  try {
    if (file.sha256 !== shard.passages.sha256) {
      throw new TrawlError(
        'INDEX_FILE_FOREIGN',
        `${path}: holds other passages (content hash ${file.sha256 ?? 'none'}) than the shard ` +
          `(${shard.passages.sha256}). Copy or build it again.`,
      );
    }
    if (file.rows !== shard.rows) {
      throw new TrawlError(
        'INDEX_FILE_TRUNCATED',
        `${path}: ${file.rows} passages for ${shard.rows} vectors. Copy or build it again.`,
      );
    }
  } finally {
    file.close();
  }
}

/** The first segment of a FAISS file begins behind its header: then the header has to agree with the shard. */
function checkVectors(folder: string, shard: ShardManifest): void {
  const first = shard.vectors[0];
  const bytes = shard.vectors.reduce((sum, segment) => sum + segment.bytes, 0);
  const valueBytes = first?.dtype === 'float16' ? 2 : 4;
  if (bytes !== shard.rows * shard.dimension * valueBytes) {
    throw new TrawlError(
      'INDEX_MANIFEST_INVALID',
      `${folder}: the vector segments have ${bytes} bytes, but ${shard.rows} rows of ${shard.dimension} need ` +
        `${shard.rows * shard.dimension * valueBytes}.`,
    );
  }
  for (const segment of shard.vectors) {
    const path = within(folder, segment.path);
    const found = fileSize(path);
    if (found < segment.offset + segment.bytes) {
      throw new TrawlError(
        'INDEX_FILE_TRUNCATED',
        `${path}: ${found} bytes, but its rows end at byte ${segment.offset + segment.bytes}. Copy it again or build ` +
          'the index again.',
      );
    }
    if (segment.adopted !== undefined) checkAdopted(path, segment, segment.adopted, found);
  }
  // What was adopted was looked at as a whole; its header counts the rows of all shards.
  if (first === undefined || first.adopted !== undefined) return;
  const path = within(folder, first.path);
  const header =
    first.dtype === 'float32' && first.offset === FAISS_HEADER_BYTES
      ? decodeFlatHeader(readHead(path, FAISS_HEADER_BYTES), path)
      : first.dtype === 'float16' && first.offset === FAISS_FP16_HEADER_BYTES
        ? decodeFp16Header(readHead(path, FAISS_FP16_HEADER_BYTES), path)
        : undefined;
  if (header === undefined) return;
  if (
    header.dimension !== shard.dimension ||
    header.rows !== shard.rows ||
    header.metric !== faissMetric(shard.metric)
  ) {
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${path}: holds ${header.rows} rows of ${header.dimension} (${header.metric}), the shard has ${shard.rows} of ` +
        `${shard.dimension} (${shard.metric}).`,
    );
  }
}

type Segment = ShardManifest['vectors'][number];

/** A file that is not ours may be replaced by one of the same size: some of its content is looked at. */
function checkAdopted(path: string, segment: Segment, adopted: NonNullable<Segment['adopted']>, found: number): void {
  const wayOut = 'Put the adopted file back, or import the vectors again with --overwrite.';
  if (found !== adopted.fileBytes) {
    throw new TrawlError(
      'INDEX_FILE_TRUNCATED',
      `${path}: ${found} bytes, and had ${adopted.fileBytes} when it was adopted. ${wayOut}`,
    );
  }
  if (sampleChecksum(path, segment) !== adopted.sample) {
    throw new TrawlError('INDEX_FILE_FOREIGN', `${path}: holds other values than when it was adopted. ${wayOut}`);
  }
}

/** The rows that are not removed. @throws TrawlError INDEX_FILE_… where the bitmap is not one of these rows. */
export function readAlive(folder: string, manifest: IndexManifest): RowBitmap {
  const record = manifest.tombstones!;
  const path = within(folder, record.path);
  checkFile(path, record.bytes);
  const removed = readFileSync(path);
  if (removed.length !== Math.ceil(manifest.rows / 8)) {
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${path}: ${removed.length} bytes are no bitmap of ${manifest.rows} rows.`,
    );
  }
  return new RowBitmap(
    manifest.rows,
    Uint8Array.from(removed, (byte) => ~byte & 0xff),
  );
}

function fileSize(path: string): number {
  return withFile(path, (file) => fstatSync(file).size);
}

function readHead(path: string, bytes: number): Uint8Array {
  const head = new Uint8Array(bytes);
  const got = withFile(path, (file) => readSync(file, head, 0, bytes, 0));
  return head.subarray(0, got);
}

function withFile<T>(path: string, use: (file: number) => T): T {
  let file: number;
  try {
    // Opening a pipe would wait for ever.
    if (!statSync(path).isFile()) throw new Error('it is no regular file');
    file = openSync(path, 'r');
  } catch (cause) {
    throw new TrawlError(
      'INDEX_FILE_MISSING',
      `${path}: cannot be read (${(cause as Error).message}). Restore it or build the index again.`,
      { cause },
    );
  }
  try {
    return use(file);
  } finally {
    closeSync(file);
  }
}

import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { TrawlError } from '../../base/errors.ts';
import { isSameModel } from '../../encoder/identity/same-model.ts';
import {
  decodeFlatHeader,
  decodeFp16Header,
  FAISS_FP16_HEADER_BYTES,
  FAISS_HEADER_BYTES,
  faissMetric,
} from '../../engine/vectors/faiss-format.ts';
import { sampleChecksum } from '../../engine/vectors/sample-checksum.ts';
import { type IndexManifest, vectorSpace } from '../../index/manifest/index-manifest.ts';
import { type ShardManifest, shardLexical } from '../../index/manifest/shard-manifest.ts';
import { PassageFile } from '../../index/passages/passage-file.ts';

type Segment = ShardManifest['vectors'][number];

/** @throws TrawlError INDEX_FILE_FOREIGN if the shard's manifest does not fit the index's. */
export function checkBelongs(
  folder: string,
  shard: ShardManifest,
  entry: IndexManifest['shards'][number],
  index: IndexManifest,
): void {
  const differences: string[] = [];
  for (const [name, own, expected] of [
    ['generation', shard.generation, entry.generation],
    ['number of rows', shard.rows, entry.rows],
    ['dimension', shard.dimension, index.dimension],
    ['metric', shard.metric, index.metric],
  ] as const) {
    if (own !== expected) differences.push(`its ${name} is ${own}, but the index has ${expected}`);
  }
  if (!isSameModel(shard.model, index.model)) {
    const [own, expected] = [shard.model?.name ?? 'none', index.model?.name ?? 'none'];
    differences.push(`its model (${own}) differs from the model of the index (${expected})`);
  }
  // While inverted indexes are being built, the index manifest does not name them yet.
  if (index.bm25 !== undefined && shardLexical(shard, index) === undefined) {
    differences.push('its inverted indexes have other settings than the index');
  }
  for (const { name, type } of index.columns ?? []) {
    if (shard.columns?.some((column) => column.name === name && column.type === type) === true) continue;
    differences.push(`it does not have the column ${name} (${type})`);
  }
  if (differences.length === 0) return;
  throw new TrawlError(
    'INDEX_FILE_FOREIGN',
    `${folder}: the shard belongs to another index: ${differences.join('; ')}. Copy the right shard or build the index again.`,
  );
}

export function checkFile(path: string, bytes: number): void {
  const found = fileSize(path);
  if (found !== bytes) {
    throw new TrawlError(
      'INDEX_FILE_TRUNCATED',
      `${path}: has ${found} bytes, but the manifest says ${bytes}. Copy it again or build the index again.`,
    );
  }
}

/** Compares the content hash that is stored in the file; does not read the passages. */
export function checkPassages(path: string, shard: ShardManifest): void {
  const file = new PassageFile(path);
  try {
    if (file.sha256 !== shard.passages.sha256) {
      throw new TrawlError(
        'INDEX_FILE_FOREIGN',
        `${path}: its content hash is ${file.sha256 ?? 'missing'}, but the manifest says ${shard.passages.sha256}. ` +
          'Copy or build it again.',
      );
    }
    if (file.rows !== shard.rows) {
      throw new TrawlError(
        'INDEX_FILE_TRUNCATED',
        `${path}: has ${file.rows} passages, but the shard has ${shard.rows} vectors. Copy or build it again.`,
      );
    }
  } finally {
    file.close();
  }
}

/**
 * Checks that the segments hold all rows, and that the header of a FAISS file matches the shard. `segments`: the manifest's, with
 * absolute paths.
 */
export function checkVectors(folder: string, shard: ShardManifest, segments: readonly Segment[]): void {
  const space = vectorSpace(shard);
  if (space === undefined) return;
  const [first] = segments;
  const bytes = segments.reduce((sum, segment) => sum + segment.bytes, 0);
  const valueBytes = first?.dtype === 'float16' ? 2 : 4;
  if (bytes !== shard.rows * shard.dimension * valueBytes) {
    throw new TrawlError(
      'INDEX_MANIFEST_INVALID',
      `${folder}: the vector segments have ${bytes} bytes, but ${shard.rows} rows of ${shard.dimension} need ` +
        `${shard.rows * shard.dimension * valueBytes}. Copy the manifest again or build the index again.`,
    );
  }
  if (segments.some(({ dtype }) => dtype !== first!.dtype)) {
    throw new TrawlError(
      'INDEX_MANIFEST_INVALID',
      `${folder}: the vector segments have different types. Copy the manifest again or build the index again.`,
    );
  }
  for (const segment of segments) {
    const { path } = segment;
    const found = fileSize(path);
    if (found < segment.offset + segment.bytes) {
      throw new TrawlError(
        'INDEX_FILE_TRUNCATED',
        `${path}: has ${found} bytes, but its rows end at byte ${segment.offset + segment.bytes}. Copy it again or ` +
          'build the index again.',
      );
    }
    if (segment.adopted !== undefined) checkAdopted(segment, segment.adopted, found);
  }
  // The header of an adopted file counts the rows of all shards; the import checked it.
  if (first === undefined || first.adopted !== undefined) return;
  const { path } = first;
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
    header.metric !== faissMetric(space.metric)
  ) {
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${path}: has ${header.rows} rows of dimension ${header.dimension} (${header.metric}), but the shard has ` +
        `${shard.rows} rows of dimension ${shard.dimension} (${shard.metric}). Copy or build it again.`,
    );
  }
}

/** Compares size and a sample of the content: another program may have replaced the file with one of the same size. */
function checkAdopted(segment: Segment, adopted: NonNullable<Segment['adopted']>, found: number): void {
  const { path } = segment;
  const wayOut = 'Put the adopted file back, or import the vectors again with --overwrite.';
  if (found !== adopted.fileBytes) {
    throw new TrawlError(
      'INDEX_FILE_TRUNCATED',
      `${path}: has ${found} bytes, but had ${adopted.fileBytes} when it was adopted. ${wayOut}`,
    );
  }
  if (sampleChecksum(path, segment) !== adopted.sample) {
    throw new TrawlError('INDEX_FILE_FOREIGN', `${path}: its content changed after it was adopted. ${wayOut}`);
  }
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
    // Opening a named pipe would block forever.
    if (!statSync(path).isFile()) throw new Error('it is not a regular file');
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

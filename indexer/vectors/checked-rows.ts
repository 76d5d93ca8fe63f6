import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { bug, TrawlError } from '../../src/base/errors.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import type { OpenedShard } from '../../src/search/opening/index-directory.ts';
import { readSegments, type SegmentBlock } from './read-segments.ts';
import { shardSegments } from './shard-segments.ts';

/** The bytes [first, end) that a checksum in the manifest covers: Trawl's whole file, or the rows of an adopted file. */
interface CheckedRange {
  readonly sha256: string;
  readonly first: number;
  readonly end: number;
}

/**
 * Reads the rows of a shard for a copy, as float32 in blocks, and hashes the bytes meanwhile. If a checksum differs from the
 * manifest, throws after the last block; the caller must then discard the copy. Otherwise the copy would get a checksum of
 * its own, and the damage could never be detected.
 *
 * @throws TrawlError INDEX_FILE_FOREIGN with the file, VECTORS_NOT_FOUND, VECTORS_INVALID, CANCELLED.
 */
export async function* readCheckedRows(
  shard: OpenedShard,
  signal: AbortSignal | undefined,
): AsyncGenerator<Omit<SegmentBlock, 'parts'>> {
  const { manifest } = shard;
  const segments = shardSegments(shard);
  const ranges = manifest.vectors.map((segment) => checkedRange(segment, manifest.files));
  const hashes = segments.map(() => createHash('sha256'));
  for (const [i, { path, offset }] of segments.entries()) await hashBytes(hashes[i]!, path, ranges[i]!.first, offset);
  for await (const { first, count, values, parts } of readSegments(segments, manifest.dimension, { signal })) {
    for (const { segment, bytes } of parts) hashes[segment]!.update(bytes);
    yield { first, count, values };
  }
  for (const [i, { path, offset, bytes }] of segments.entries()) {
    const { sha256, first, end } = ranges[i]!;
    await hashBytes(hashes[i]!, path, offset + bytes, end);
    const found = hashes[i]!.digest('hex');
    if (found === sha256) continue;
    throw new TrawlError(
      'INDEX_FILE_FOREIGN',
      `${path}: sha256 of bytes ${first} to ${end} is ${found}, the manifest says ${sha256}. The vectors are not copied. ` +
        'Restore the file, or build the index again.',
      { details: { path } },
    );
  }
}

function checkedRange(segment: ShardManifest['vectors'][number], files: ShardManifest['files']): CheckedRange {
  const { adopted, path, offset, bytes } = segment;
  if (adopted !== undefined) return { sha256: adopted.sha256, first: offset, end: offset + bytes };
  const record = files.find((file) => file.path === path);
  if (record === undefined) throw bug(`the manifest has no checksum of ${path}`);
  return { sha256: record.sha256, first: 0, end: record.bytes };
}

async function hashBytes(hash: Hash, path: string, first: number, end: number): Promise<void> {
  if (first >= end) return;
  for await (const chunk of createReadStream(path, { start: first, end: end - 1 })) hash.update(chunk as Buffer);
}

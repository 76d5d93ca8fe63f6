import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { throwIfCancelled } from '../../src/abort.ts';
import { TrawlError } from '../../src/errors.ts';
import { generationOf } from '../../src/manifest/generation.ts';
import type { IndexManifest } from '../../src/manifest/index-manifest.ts';
import { withChecksum } from '../../src/manifest/manifest-checksum.ts';
import { readIndexManifest } from '../../src/manifest/read-manifest.ts';
import { SHARD_MANIFEST_FILE, type ShardManifest } from '../../src/manifest/shard-manifest.ts';
import { syncFolder, writeJsonDurably } from '../../src/manifest/write-json.ts';
import { duplicateIds } from '../../src/passages/duplicate-ids.ts';
import { PassageFile } from '../../src/passages/passage-file.ts';
import { SqlitePassageWriter } from '../../src/passages/sqlite-passage-writer.ts';
import { type OpenedShard, openIndexDirectory, within } from '../../src/retrieval/index-directory.ts';
import type { Kernel } from '../../src/vector-index/kernel.ts';
import { SegmentReader } from '../../src/vector-index/vector-segments.ts';
import { OutputFolder } from '../build/output-folder.ts';
import { ShardVectors } from '../build/shard-vectors.ts';
import { PASSAGES_FILE, shardFolderName } from '../index-files.ts';
import { requireUnchangedVectors } from '../verify/vector-checksums.ts';
import { writeFailure } from '../write-failure.ts';
import { checkNothingBegun } from './claim-update.ts';
import { type AddedShard, nextShardNumber, publishGeneration, removeLeftovers } from './publish-generation.ts';

/** Rows copied between two looks at the signal. */
const BLOCK_ROWS = 1_024;

export interface CompactOptions {
  readonly onStep: (doing: string) => void;
  readonly signal?: AbortSignal | undefined;
}

export interface CompactSummary {
  readonly manifest: IndexManifest;
  /** Shards that were written anew. */
  readonly compacted: number;
  /** Rows that are gone. */
  readonly dropped: number;
}

interface Alive {
  has(row: number): boolean;
}

/**
 * Writes the shards that have removed rows anew, without them: rows behind get other numbers, so it is a new generation.
 * Vectors and passages are copied, codes are made anew. The old shards stay until the index is changed or compacted
 * again, for servers that have them open. Not gone on with where it is stopped: it takes the time of copying.
 *
 * @throws TrawlError INDEX_NOT_FOUND, BUILD_LOCKED, BUILD_DIFFERS where an update is to be finished first, DISK_FULL,
 * OUTPUT_NOT_WRITABLE, CANCELLED, errors of the index's files. The index is the old one then.
 */
export async function compactIndex(
  index: string,
  kernel: Kernel | undefined,
  { onStep, signal }: CompactOptions,
): Promise<CompactSummary> {
  readIndexManifest(index);
  const output = await OutputFolder.prepare(realpathSync(index), true);
  let isOurs = false;
  try {
    const directory = openIndexDirectory(output.final);
    const { manifest: before, source, shards } = directory;
    checkNothingBegun(output, directory);
    isOurs = true;
    await removeLeftovers(directory.folder, before);
    const { alive } = source;
    if (alive === undefined) return { manifest: before, compacted: 0, dropped: 0 };
    // Not the names of shards: what is left here by a process that dies is no job's.
    const work = join(output.partial, 'compact');
    await output.clear();
    await mkdir(work);
    const added: AddedShard[] = [];
    const entries: IndexManifest['shards'] = [];
    for (const [i, shard] of shards.entries()) {
      const entry = before.shards[i]!;
      const aliveHere: Alive = { has: (row) => alive.has(shard.firstRow + row) };
      const rows = countAlive(aliveHere, shard.manifest.rows);
      if (rows === 0) continue;
      if (rows === shard.manifest.rows) {
        entries.push(entry);
        continue;
      }
      const name = shardFolderName(nextShardNumber(before) + added.length);
      onStep(`${shard.folder}: ${rows} of ${shard.manifest.rows} rows`);
      const manifest = await copyShard(shard, join(work, name), { alive: aliveHere, rows, kernel, signal });
      added.push({ name, manifest });
      entries.push({ path: name, firstRow: 0, rows, generation: manifest.generation });
    }
    const lastUpdate = before.lastUpdate ?? { kind: 'remove', before: before.generation, reading: null };
    const { corpus } = before;
    const manifest = await publishGeneration(directory, work, { shards: added, entries, corpus, lastUpdate });
    return { manifest, compacted: added.length, dropped: before.rows - manifest.rows };
  } catch (error) {
    throw writeFailure(error, output.final);
  } finally {
    if (isOurs) await output.discard();
    else output.release();
  }
}

interface Copying {
  readonly alive: Alive;
  readonly rows: number;
  readonly kernel: Kernel | undefined;
  readonly signal: AbortSignal | undefined;
}

async function copyShard(from: OpenedShard, folder: string, copying: Copying): Promise<ShardManifest> {
  const { rows, signal } = copying;
  const { input: _, ...old } = from.manifest;
  const { dimension, metric, model } = old;
  await requireUnchangedVectors(from, signal);
  await mkdir(folder);
  const passages = copyPassages(from, join(folder, PASSAGES_FILE), copying);
  const written = await copyVectors(from, folder, copying);
  const { passageTemplate } = old.corpus;
  const manifest: ShardManifest = {
    ...old,
    generation: generationOf([rows, dimension, metric, model, passageTemplate, passages.sha256, written.sha256]),
    rows,
    corpus: {
      ...old.corpus,
      files: old.corpus.files.map((file, i) => ({ ...file, passages: passages.byFile[i] ?? 0 })),
      duplicateIds: duplicateIds([join(folder, PASSAGES_FILE)], { exampleCount: 0, signal }).count,
    },
    vectors: written.vectors,
    codes: written.codes,
    passages: { path: PASSAGES_FILE, sha256: passages.sha256 },
    files: [...written.files],
  };
  if (written.screen === undefined) delete manifest.screen;
  else manifest.screen = written.screen;
  await syncFolder(folder);
  await writeJsonDurably(join(folder, SHARD_MANIFEST_FILE), withChecksum(manifest));
  return manifest;
}

/** @returns the content hash, and the passages that are left of each corpus file: a shard has them in the corpus's order. */
function copyPassages(
  { folder, manifest }: OpenedShard,
  path: string,
  { alive, signal }: Copying,
): { sha256: string; byFile: number[] } {
  const ends: number[] = [];
  for (const { passages } of manifest.corpus.files) ends.push((ends.at(-1) ?? 0) + passages);
  const byFile = ends.map(() => 0);
  const file = new PassageFile(within(folder, manifest.passages.path), { mapped: false });
  const writer = new SqlitePassageWriter(path);
  const read = createHash('sha256');
  try {
    let fileIndex = 0;
    for (const { row, id, line, document } of file.passages()) {
      if (row % BLOCK_ROWS === 0) throwIfCancelled(signal);
      read.update(`${document}\n`);
      while (fileIndex < ends.length - 1 && row >= ends[fileIndex]!) fileIndex++;
      if (!alive.has(row)) continue;
      writer.append({ id, line, document });
      if (fileIndex < byFile.length) byFile[fileIndex]!++;
    }
    // The copy gets a content hash of its own, which would vouch for a passage that had changed.
    if (read.digest('hex') !== manifest.passages.sha256) {
      throw new TrawlError(
        'INDEX_FILE_FOREIGN',
        `${within(folder, manifest.passages.path)}: its passages are not those that were written (content hash), and are ` +
          'not copied. Restore the file, or build the index again.',
      );
    }
    const sha256 = writer.finishRows();
    writer.finish();
    return { sha256, byFile };
  } finally {
    writer.abandon();
    file.close();
  }
}

async function copyVectors(
  { folder, manifest }: OpenedShard,
  to: string,
  { alive, rows, kernel, signal }: Copying,
): ReturnType<ShardVectors['finish']> {
  const { dimension, metric } = manifest;
  const segments = manifest.vectors.map((segment) => ({ ...segment, path: within(folder, segment.path) }));
  const reader = new SegmentReader(segments, dimension);
  const vectors = await ShardVectors.open(to, { rows, dimension, metric }, { kernel, signal });
  const block = new Float32Array(BLOCK_ROWS * dimension);
  try {
    for (let first = 0; first < manifest.rows; first += BLOCK_ROWS) {
      throwIfCancelled(signal);
      const count = Math.min(BLOCK_ROWS, manifest.rows - first);
      reader.read(first, count, block);
      let kept = 0;
      for (let i = 0; i < count; i++) {
        if (!alive.has(first + i)) continue;
        block.copyWithin(kept * dimension, i * dimension, (i + 1) * dimension);
        kept++;
      }
      if (kept > 0) await vectors.append(block.slice(0, kept * dimension));
    }
    return await vectors.finish(signal);
  } catch (error) {
    await vectors.abandon();
    throw error;
  } finally {
    reader.close();
  }
}

function countAlive(alive: Alive, rows: number): number {
  let count = 0;
  for (let row = 0; row < rows; row++) if (alive.has(row)) count++;
  return count;
}

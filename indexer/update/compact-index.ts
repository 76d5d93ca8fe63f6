import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { type IndexManifest, type VectorSpace, vectorSpace } from '../../src/index/manifest/index-manifest.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { type OpenedShard, within } from '../../src/search/opening/index-directory.ts';
import { clearFolder } from '../building/build-lock.ts';
import { completeShard, type MadeOfPassages } from '../building/complete-shard.ts';
import { copyPassages } from '../building/copy-passages.ts';
import { openShardVectors, type WrittenShardVectors } from '../building/shard-vectors.ts';
import { PASSAGES_FILE, shardFolderName } from '../index-files.ts';
import { keptRows, readCheckedRows } from '../vectors/read-segments.ts';
import { changeIndex } from './claim-update.ts';
import { lastReading } from './last-reading.ts';
import {
  type AddedShard,
  nextShardNumber,
  publishGeneration,
  removeLeftovers,
  type ShardEntry,
} from './publish-generation.ts';

export interface CompactOptions {
  readonly onStep: (step: string) => void;
  readonly signal?: AbortSignal;
}

export interface CompactSummary {
  readonly manifest: IndexManifest;
  readonly compacted: number;
  /** Deleted rows that are no longer in the index. */
  readonly dropped: number;
}

/**
 * Rewrites the shards that have deleted rows, without those rows. Later rows get other numbers, so the result is a new
 * generation. Copies vectors and passages and makes the codes again. Keeps the old shards until the next change of the index,
 * for servers that have them open. A stopped compaction starts from the beginning.
 *
 * @throws TrawlError as `changeIndex`; DISK_FULL, OUTPUT_NOT_WRITABLE, CANCELLED. An error leaves the index unchanged.
 */
export async function compactIndex(
  index: string,
  kernel: Kernel | undefined,
  { onStep, signal }: CompactOptions,
): Promise<CompactSummary> {
  return changeIndex(index, async (directory, output) => {
    const { manifest: before, liveRows, shards } = directory;
    await removeLeftovers(directory.folder, before);
    if (liveRows === undefined) return { manifest: before, compacted: 0, dropped: 0 };
    // In a subfolder, because shards of a killed process in the folder itself would look like shards of jobs.
    const work = join(output.folder, 'compact');
    await clearFolder(output.folder);
    await mkdir(work);
    const added: AddedShard[] = [];
    const allShards: ShardEntry[] = [];
    for (const [i, shard] of shards.entries()) {
      const entry = before.shards[i]!;
      const isLive = (row: number): boolean => liveRows.has(shard.firstRow + row);
      let rows = 0;
      for (let row = 0; row < shard.manifest.rows; row++) if (isLive(row)) rows++;
      if (rows === 0) continue;
      if (rows === shard.manifest.rows) {
        allShards.push(entry);
        continue;
      }
      const name = shardFolderName(nextShardNumber(before) + added.length);
      onStep(`${shard.folder}: ${rows} of ${shard.manifest.rows} rows`);
      const manifest = await copyShard(shard, join(work, name), {
        isLive,
        rows,
        bm25: before.bm25?.made,
        columns: before.columns ?? [],
        kernel,
        signal,
      });
      added.push({ name, manifest });
      allShards.push({ path: name, rows, generation: manifest.generation });
    }
    // A shard with other rows has no `input`, so the manifest keeps how the corpus was read.
    const reading = lastReading(before, shards[0]?.manifest);
    const lastUpdate = { ...(before.lastUpdate ?? { kind: 'remove', before: before.generation }), reading };
    const { corpus } = before;
    const manifest = await publishGeneration(directory, work, { newShards: added, allShards, corpus, lastUpdate });
    return { manifest, compacted: added.length, dropped: before.rows - manifest.rows };
  });
}

interface Copying extends MadeOfPassages {
  readonly isLive: (row: number) => boolean;
  readonly rows: number;
}

async function copyShard(from: OpenedShard, folder: string, copying: Copying): Promise<ShardManifest> {
  const { corpus } = from.manifest;
  await mkdir(folder);
  const source = { path: within(from.folder, from.manifest.passages.path), sha256: from.manifest.passages.sha256 };
  const counts = corpus.files.map(({ passages }) => passages);
  const passages = copyPassages({ ...source, passagesByFile: counts }, join(folder, PASSAGES_FILE), copying);
  const space = vectorSpace(from.manifest);
  const vectors = space && (await copyVectors(from, folder, space, copying));
  const files = corpus.files.map((file, i) => ({ ...file, passages: passages.passagesByFile[i]! }));
  // Without `input`, because the shard no longer has all of its part of the corpus.
  return completeShard(
    folder,
    { rows: copying.rows, space, vectors, passagesSha256: passages.sha256, corpus: { ...corpus, files } },
    copying,
  );
}

async function copyVectors(
  from: OpenedShard,
  to: string,
  { dimension, metric }: VectorSpace,
  { isLive, rows, kernel, signal }: Copying,
): Promise<WrittenShardVectors> {
  const vectors = await openShardVectors(to, { rows, dimension, metric }, { kernel, signal });
  try {
    for await (const { first, values } of readCheckedRows(from, signal)) {
      const kept = keptRows(values, dimension, (row) => isLive(first + row));
      if (kept.length > 0) await vectors.append(kept);
    }
    return await vectors.finish(signal);
  } catch (error) {
    await vectors.abandon();
    throw error;
  }
}

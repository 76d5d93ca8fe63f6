import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { type VectorSpace, vectorSpace } from '../../src/index/manifest/vector-space.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { SqlitePassageWriter } from '../../src/index/passages/sqlite-passage-writer.ts';
import { type OpenedShard, openIndexDirectory, within } from '../../src/search/opening/index-directory.ts';
import { completeShard, type MadeOfPassages } from '../building/complete-shard.ts';
import { OutputFolder } from '../building/output-folder.ts';
import { ShardVectors } from '../building/shard-vectors.ts';
import { PASSAGES_FILE, shardFolderName } from '../index-files.ts';
import { readCheckedRows } from '../vectors/checked-rows.ts';
import { checkNothingUnfinished } from './claim-update.ts';
import { lastReading } from './last-reading.ts';
import {
  type AddedShard,
  nextShardNumber,
  publishGeneration,
  removeLeftovers,
  type ShardEntry,
} from './publish-generation.ts';

/** Rows between two checks of the signal. */
const BLOCK_ROWS = 1_024;

export interface CompactOptions {
  /** Called with a description of each step. */
  readonly onStep: (step: string) => void;
  readonly signal?: AbortSignal;
}

export interface CompactSummary {
  readonly manifest: IndexManifest;
  /** Shards that were rewritten. */
  readonly compacted: number;
  /** Deleted rows that are no longer in the index. */
  readonly dropped: number;
}

interface LiveRows {
  has(row: number): boolean;
}

/**
 * Rewrites the shards that have deleted rows, without those rows. Later rows get other numbers, so the result is a new
 * generation. Copies vectors and passages and makes the codes again. Keeps the old shards until the next change of the index,
 * for servers that have them open. A stopped compaction starts from the beginning.
 *
 * @throws TrawlError INDEX_NOT_FOUND, BUILD_LOCKED, BUILD_DIFFERS if there is an unfinished update, DISK_FULL,
 * OUTPUT_NOT_WRITABLE, CANCELLED, errors of the index's files. An error leaves the index unchanged.
 */
export async function compactIndex(
  index: string,
  kernel: Kernel | undefined,
  { onStep, signal }: CompactOptions,
): Promise<CompactSummary> {
  readIndexManifest(index);
  const output = await OutputFolder.prepareChange(index);
  // An unfinished update of another run stays in the folder.
  let mayDiscard = false;
  try {
    const directory = openIndexDirectory(output.final);
    const { manifest: before, liveRows, shards } = directory;
    checkNothingUnfinished(output, directory);
    mayDiscard = true;
    await removeLeftovers(directory.folder, before);
    if (liveRows === undefined) return { manifest: before, compacted: 0, dropped: 0 };
    // In a subfolder, because shards of a killed process in the folder itself would look like shards of jobs.
    const work = join(output.folder, 'compact');
    await output.clear();
    await mkdir(work);
    const added: AddedShard[] = [];
    const allShards: ShardEntry[] = [];
    for (const [i, shard] of shards.entries()) {
      const entry = before.shards[i]!;
      const live: LiveRows = { has: (row) => liveRows.has(shard.firstRow + row) };
      const rows = countLive(live, shard.manifest.rows);
      if (rows === 0) continue;
      if (rows === shard.manifest.rows) {
        allShards.push(entry);
        continue;
      }
      const name = shardFolderName(nextShardNumber(before) + added.length);
      onStep(`${shard.folder}: ${rows} of ${shard.manifest.rows} rows`);
      const manifest = await copyShard(shard, join(work, name), {
        live,
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
  } catch (error) {
    throw writeFailure(error, output.final);
  } finally {
    if (mayDiscard) await output.discard();
    else output.release();
  }
}

interface Copying extends MadeOfPassages {
  readonly live: LiveRows;
  readonly rows: number;
}

async function copyShard(from: OpenedShard, folder: string, copying: Copying): Promise<ShardManifest> {
  const { corpus } = from.manifest;
  await mkdir(folder);
  const passages = copyPassages(from, join(folder, PASSAGES_FILE), copying);
  const space = vectorSpace(from.manifest);
  const vectors = space && (await copyVectors(from, folder, space, copying));
  const files = corpus.files.map((file, i) => ({ ...file, passages: passages.byFile[i] ?? 0 }));
  // Without `input`: the shard is no longer the whole of its part of the corpus.
  return completeShard(
    folder,
    { rows: copying.rows, space, vectors, passagesSha256: passages.sha256, corpus: { ...corpus, files } },
    copying,
  );
}
/** @returns the content hash and the number of live passages of each corpus file. The rows are in corpus order. */
function copyPassages(
  { folder, manifest }: OpenedShard,
  path: string,
  { live, signal }: Copying,
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
      if (!live.has(row)) continue;
      writer.append({ id, line, document });
      if (fileIndex < byFile.length) byFile[fileIndex]!++;
    }
    // Compare before the copy gets its own content hash, or a damaged passage could never be detected again.
    if (read.digest('hex') !== manifest.passages.sha256) {
      throw new TrawlError(
        'INDEX_FILE_FOREIGN',
        `${within(folder, manifest.passages.path)}: the passages changed since they were written (content hash) and are ` +
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
  from: OpenedShard,
  to: string,
  { dimension, metric }: VectorSpace,
  { live, rows, kernel, signal }: Copying,
): ReturnType<ShardVectors['finish']> {
  const vectors = await ShardVectors.open(to, { rows, dimension, metric }, { kernel, signal });
  try {
    for await (const { first, count, values } of readCheckedRows(from, signal)) {
      const kept = new Float32Array(count * dimension);
      let length = 0;
      for (let i = 0; i < count; i++) {
        if (!live.has(first + i)) continue;
        kept.set(values.subarray(i * dimension, (i + 1) * dimension), length);
        length += dimension;
      }
      if (length > 0) await vectors.append(kept.subarray(0, length));
    }
    return await vectors.finish(signal);
  } catch (error) {
    await vectors.abandon();
    throw error;
  }
}

function countLive(live: LiveRows, rows: number): number {
  let count = 0;
  for (let row = 0; row < rows; row++) if (live.has(row)) count++;
  return count;
}

import { createHash } from 'node:crypto';
import { throwIfCancelled } from '../src/abort.ts';
import { TrawlError } from '../src/errors.ts';
import { sha256OfFile } from '../src/file-checksum.ts';
import { PassageFile } from '../src/passages/passage-file.ts';
import { type OpenedShard, openIndexDirectory, screenPath, within } from '../src/retrieval/index-directory.ts';
import { type CheckedRows, loadKernel } from '../src/vector-index/kernel.ts';
import { SegmentReader } from '../src/vector-index/vector-segments.ts';
import { tombstoneProblems } from './verify-tombstones.ts';

/** Bytes of vectors looked at between two looks at the signal. */
const BLOCK_BYTES = 4 * 1024 * 1024;

/**
 * Reads every byte of an index: checksums of its files, the content hash of its passages, SQLite's own page check, and
 * that every vector is finite. Returns the problems as sentences, empty when there are none.
 *
 * @throws the errors of `openIndexDirectory` when files are missing or have the wrong size.
 */
export async function verifyIndex(
  folder: string,
  { onStep, signal }: { onStep: (doing: string) => void; signal?: AbortSignal },
): Promise<string[]> {
  const directory = openIndexDirectory(folder);
  const problems = await tombstoneProblems(directory, signal);
  for (const shard of directory.shards) {
    for (const file of shard.manifest.files) {
      const path = within(shard.folder, file.path);
      onStep(`checksum of ${path}`);
      const sha256 = await sha256OfFile(path, signal);
      if (sha256 !== file.sha256) problems.push(`${path}: sha256 is ${sha256}, the manifest says ${file.sha256}`);
    }
    onStep(`vectors of ${shard.folder}`);
    problems.push(...nonFiniteVectors(shard, signal));
    if (shard.manifest.codes !== null) {
      onStep(`codes of ${shard.folder}`);
      problems.push(...(await codesProblems(shard, signal)));
    }
    onStep(`passages of ${shard.folder}`);
    problems.push(...passageProblems(shard, signal));
  }
  return problems;
}

/** Derives the bounds of every row again: a bound that is too small could lose a row from an answer. */
async function codesProblems(shard: OpenedShard, signal: AbortSignal | undefined): Promise<string[]> {
  const path = within(shard.folder, shard.manifest.codes!.path);
  const loaded = loadKernel();
  if (!loaded.ok) return [`${path}: not checked, because the native engine is not there (${loaded.reason})`];
  const segments = shard.manifest.vectors.map((segment) => ({ ...segment, path: within(shard.folder, segment.path) }));
  const { dimension } = shard.manifest;
  const rows = { rows: shard.manifest.rows, dtype: segments[0]?.dtype ?? ('float32' as const), segments };
  const { kernel } = loaded;
  const problems = await problemsOf(path, kernel.verifyCodes(path, rows, dimension, signal));
  const screen = screenPath(shard);
  if (screen === null) return problems;
  return [...problems, ...(await problemsOf(screen, kernel.verifyScreen(screen, path, rows, dimension, signal)))];
}

async function problemsOf(path: string, checking: Promise<CheckedRows>): Promise<string[]> {
  try {
    const { badRow, reason } = await checking;
    return badRow < 0 ? [] : [`${path}: row ${badRow}: ${reason}`];
  } catch (error) {
    if (error instanceof TrawlError && error.code !== 'CANCELLED') return [`${path}: ${error.message}`];
    throw error;
  }
}

function nonFiniteVectors(shard: OpenedShard, signal: AbortSignal | undefined): string[] {
  const { dimension, rows } = shard.manifest;
  const segments = shard.manifest.vectors.map((segment) => ({ ...segment, path: within(shard.folder, segment.path) }));
  const reader = new SegmentReader(segments, dimension);
  const rowsPerBlock = Math.max(1, Math.floor(BLOCK_BYTES / (dimension * 4)));
  const block = new Float32Array(rowsPerBlock * dimension);
  try {
    for (let first = 0; first < rows; first += rowsPerBlock) {
      throwIfCancelled(signal);
      const count = Math.min(rowsPerBlock, rows - first);
      reader.read(first, count, block);
      const bad = block.subarray(0, count * dimension).findIndex((value) => !Number.isFinite(value));
      if (bad >= 0) {
        const row = first + Math.floor(bad / dimension);
        return [`${shard.folder}: row ${row} holds ${block[bad]} in column ${bad % dimension}; vectors must be finite`];
      }
    }
    return [];
  } finally {
    reader.close();
  }
}

function passageProblems(shard: OpenedShard, signal: AbortSignal | undefined): string[] {
  const path = within(shard.folder, shard.manifest.passages.path);
  let file: PassageFile;
  try {
    file = new PassageFile(path);
  } catch (error) {
    // Its header and size have been looked at: what fails now is damage within.
    if (error instanceof TrawlError) return [error.message];
    throw error;
  }
  try {
    const damaged = file.integrityProblems();
    if (damaged.length > 0) return damaged.map((problem) => `${path}: ${problem}`);
    const hash = createHash('sha256');
    let rows = 0;
    for (const document of file.documents()) {
      if (++rows % 10_000 === 0) throwIfCancelled(signal);
      hash.update(document).update('\n');
    }
    const sha256 = hash.digest('hex');
    const problems: string[] = [];
    if (rows !== shard.manifest.rows) problems.push(`${path}: ${rows} passages for ${shard.manifest.rows} vectors`);
    if (sha256 !== shard.manifest.passages.sha256) {
      problems.push(`${path}: content hash is ${sha256}, the manifest says ${shard.manifest.passages.sha256}`);
    }
    return problems;
  } catch (error) {
    if (error instanceof Error && error.name === 'SqliteError') return [`${path}: ${error.message}`];
    throw error;
  } finally {
    file.close();
  }
}

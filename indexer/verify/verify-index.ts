import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { throwIfCancelled } from '../../src/abort.ts';
import { TrawlError } from '../../src/errors.ts';
import { sha256OfFile } from '../../src/file-checksum.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../../src/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/manifest/read-manifest.ts';
import { SHARD_MANIFEST_FILE } from '../../src/manifest/shard-manifest.ts';
import {
  type OpenedShard,
  openIndexDirectory,
  openShard,
  readAlive,
  within,
} from '../../src/retrieval/index-directory.ts';
import { Examination } from './examination.ts';
import { problem, problemOf, type VerifyProblem } from './verify-problem.ts';
import type { VerifyOptions, VerifyReport } from './verify-report.ts';

/**
 * Examines an index. Whole: the checksum of every file, SQLite's pages, the content hash, every bound of the codes, that
 * vectors are finite, the tombstones, the counts, and passages against vectors by embedding a sample. Problems are
 * collected, so one damaged file hides no other.
 *
 * @throws TrawlError INDEX_NOT_FOUND; CANCELLED. What is wrong with a manifest is a problem found.
 */
export async function examineIndex(path: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  const folder = resolve(path);
  const problems: VerifyProblem[] = [];
  const manifest = openManifest(folder, problems);
  if (manifest === undefined) return { problems, notChecked: [], rows: 0, shards: 0, sample: null };
  const notChecked = withoutChecksum(join(folder, INDEX_MANIFEST_FILE));
  const shards: OpenedShard[] = [];
  for (const entry of manifest.shards) {
    throwIfCancelled(options.signal);
    const file = join(within(folder, entry.path), SHARD_MANIFEST_FILE);
    try {
      shards.push(openShard(folder, manifest, entry));
      notChecked.push(...withoutChecksum(file));
    } catch (error) {
      problems.push(problemOf(error, file));
      notChecked.push(`${within(folder, entry.path)}: the rest of the shard was not read, because of the above.`);
    }
  }
  problems.push(...(await tombstoneProblems(folder, manifest)));
  const counts = { rows: manifest.rows, shards: manifest.shards.length };
  if (options.quick === true) return { problems, notChecked, ...counts, sample: null };
  const run = new Examination(shards, options);
  const isRequired = options.requireEncoder === true && (options.sample ?? 0) > 0;
  const required = isRequired ? await options.openEncoder?.(folder, manifest) : undefined;
  try {
    for (const shard of shards) await run.examine(shard);
    const sample = await run.sample(folder, manifest, required);
    return {
      problems: [...problems, ...run.problems],
      notChecked: [...notChecked, ...run.notChecked],
      ...counts,
      sample,
    };
  } finally {
    await required?.close();
  }
}

/**
 * The problems of an index as sentences, without the model; empty when there are none.
 *
 * @throws the errors of `openIndexDirectory` when files are missing or have the wrong size.
 */
export async function verifyIndex(
  folder: string,
  { onStep, signal }: { onStep: (doing: string) => void; signal?: AbortSignal },
): Promise<string[]> {
  openIndexDirectory(folder);
  const { problems } = await examineIndex(folder, { onProgress: ({ step }) => onStep(step), signal });
  return problems.map(({ message }) => message);
}

function openManifest(folder: string, problems: VerifyProblem[]): IndexManifest | undefined {
  const file = join(folder, INDEX_MANIFEST_FILE);
  try {
    const manifest = readIndexManifest(folder);
    if (manifest.model.dimension !== manifest.dimension) {
      problems.push(problem(file, `dimension ${manifest.dimension} with a model of ${manifest.model.dimension}`));
    }
    return manifest;
  } catch (error) {
    if (error instanceof TrawlError && error.code === 'INDEX_NOT_FOUND') throw error;
    problems.push(problemOf(error, file));
    return undefined;
  }
}

function withoutChecksum(file: string): string[] {
  const has = Object.hasOwn(JSON.parse(readFileSync(file, 'utf8')) as object, 'checksum');
  return has ? [] : [`${file}: has no checksum of itself, so a change in it would not be seen.`];
}

async function tombstoneProblems(folder: string, manifest: IndexManifest): Promise<VerifyProblem[]> {
  if (manifest.tombstones === null) return [];
  const { path, sha256, rows } = manifest.tombstones;
  const file = within(folder, path);
  try {
    const alive = readAlive(folder, manifest);
    const problems: VerifyProblem[] = [];
    const found = await sha256OfFile(file);
    if (found !== sha256) problems.push(problem(file, `sha256 is ${found}, the manifest says ${sha256}`));
    const removed = manifest.rows - alive.count();
    if (removed !== rows) problems.push(problem(file, `${removed} rows are removed, the manifest says ${rows}`));
    for (let row = manifest.rows; row < 8 * alive.bytes.length; row++) {
      if ((alive.bytes[Math.floor(row / 8)]! & (1 << (row % 8))) === 0) {
        problems.push(problem(file, `row ${row} is removed, and the index has ${manifest.rows} rows`));
      }
    }
    return problems;
  } catch (error) {
    return [problemOf(error, file)];
  }
}

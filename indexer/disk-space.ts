import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { CorpusScan } from '../corpus/scan-corpus.ts';
import { requireFreeBytes } from '../src/base/system/free-bytes.ts';
import type { WorkOptions } from './building/build-options.ts';
import { type PlannedShard, rowsOf, storedPassages } from './building/planned-shard.ts';
import { expectedBytes, sampleCorpus } from './expected-size.ts';
import { PASSAGES_FILE } from './index-files.ts';

interface Output {
  readonly folder: string;
  readonly final: string;
}

const HINT = 'trawl index --plan prints the size of each file.';

/**
 * Compares the expected size of the shards' files with the free disk space, before passages are stored. Estimates it from the
 * first passages of the corpus.
 *
 * @param rows number of passages. Default: estimated from the share of blank lines among the first.
 * @throws TrawlError DISK_FULL.
 */
export async function checkSpaceForPassages(
  output: Output,
  { corpus, corpusOptions, encoder, kernel, bm25, vectors }: WorkOptions,
  scan: CorpusScan | undefined,
  places: readonly PlannedShard[],
  rows?: number,
): Promise<void> {
  if (scan === undefined || places.every(({ folder }) => storedPassages(folder) !== undefined)) return;
  const sample = await sampleCorpus(corpus, corpusOptions, { scan, first: places[0]!.first, end: places.at(-1)!.end });
  const positions = places.reduce((sum, { first, end }) => sum + end - first, 0);
  const count = rows ?? Math.round(positions * sample.passagesPerPosition);
  const bytes = expectedBytes(count, {
    dimension: encoder?.dimension ?? 0,
    codes: kernel !== undefined,
    words: bm25 !== undefined,
    sample,
  });
  const needed =
    (vectors?.use === 'adopt' ? 0 : bytes.vectors) + bytes.codes + bytes.prefilter + bytes.words + bytes.passages;
  const what = rows === undefined ? `about ${count} passages` : `${count} new passages`;
  await requireSpace(output, places, needed, what);
}

/** Compares the size of the shards' files with the free disk space, after passages are stored. @throws TrawlError DISK_FULL. */
export async function checkSpaceForVectors(
  output: Output,
  { encoder, kernel, vectors }: WorkOptions,
  shards: readonly { readonly folder: string; readonly rows: number }[],
): Promise<void> {
  const rows = rowsOf(shards);
  const bytes = expectedBytes(rows, { dimension: encoder?.dimension ?? 0, codes: kernel !== undefined });
  const stored = shards.reduce((sum, { folder }) => sum + bytesOf(join(folder, PASSAGES_FILE)), 0);
  const needed = (vectors?.use === 'adopt' ? 0 : bytes.vectors) + bytes.codes + bytes.prefilter + stored;
  await requireSpace(output, shards, needed, `${rows} passages`);
}

/**
 * Compares the final size of some folders, minus their current size, with the free disk space.
 *
 * @throws TrawlError DISK_FULL.
 */
export async function requireSpace(
  { folder, final }: Output,
  places: readonly { readonly folder: string }[],
  finalBytes: number,
  what: string,
): Promise<void> {
  const existing = places.reduce((sum, place) => sum + bytesIn(place.folder), 0);
  await requireFreeBytes({ path: final, disk: folder, bytes: finalBytes - existing, what, hint: HINT });
}

function bytesIn(folder: string): number {
  if (!existsSync(folder)) return 0;
  return readdirSync(folder).reduce((sum, name) => sum + bytesOf(join(folder, name)), 0);
}

function bytesOf(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true ? stats.size : 0;
}

import { existsSync, readdirSync, statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { CorpusOptions } from '../corpus/open-corpus.ts';
import type { CorpusScan } from '../corpus/scan-corpus.ts';
import type { TextEncoder } from '../src/embedding/text-encoder.ts';
import { TrawlError } from '../src/errors.ts';
import type { OutputFolder } from './build/output-folder.ts';
import { type ShardPlace, storedPassages } from './build/store-passages.ts';
import { expectedBytes, sampleCorpus } from './expected-size.ts';

interface RoomOptions {
  readonly corpus: readonly string[];
  readonly corpusOptions: CorpusOptions;
  readonly encoder: TextEncoder;
  readonly kernel?: object | undefined;
  readonly vectors?: { readonly use: 'adopt' | 'copy' } | undefined;
}

/** Bytes that can still be written where `path` is or will be. */
export async function freeBytes(path: string): Promise<number> {
  let folder = path;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/**
 * Stops a build that cannot fit before it has begun, by what its first passages let expect.
 *
 * @throws TrawlError DISK_FULL.
 */
export async function checkRoom(
  output: OutputFolder,
  { corpus, corpusOptions, encoder, kernel, vectors: given }: RoomOptions,
  scan: CorpusScan | undefined,
  places: readonly ShardPlace[],
): Promise<void> {
  const [place] = places;
  if (scan === undefined || place === undefined) return;
  if (places.every(({ folder }) => storedPassages(folder) !== undefined)) return;
  const sample = await sampleCorpus(corpus, corpusOptions, { scan, ...place });
  const positions = places.reduce((sum, { first, end }) => sum + end - first, 0);
  const rows = Math.round(positions * sample.passagesPerPosition);
  const { vectors, codes, screen, passages } = expectedBytes(rows, {
    dimension: encoder.dimension,
    codes: kernel !== undefined,
    sample,
  });
  const own = given?.use === 'adopt' ? 0 : vectors;
  await refuseWithoutRoom(output, places, own + codes + screen + passages, `about ${rows} passages`);
}

/** The same when the number of rows is known, before anything is embedded. */
export async function checkRoomForVectors(
  output: OutputFolder,
  { encoder, kernel, vectors: given }: RoomOptions,
  places: readonly ShardPlace[],
  rows: number,
): Promise<void> {
  const { vectors, codes, screen } = expectedBytes(rows, { dimension: encoder.dimension, codes: kernel !== undefined });
  const there = places.reduce((sum, { folder }) => sum + bytesOf(join(folder, 'passages.sqlite')), 0);
  const own = given?.use === 'adopt' ? 0 : vectors;
  await refuseWithoutRoom(output, places, own + codes + screen + there, `${rows} passages`);
}

/**
 * Compares what is to be written, less what is there of it already, with what is free.
 *
 * @throws TrawlError DISK_FULL.
 */
export async function refuseWithoutRoom(
  output: OutputFolder,
  places: readonly { readonly folder: string }[],
  bytes: number,
  what: string,
): Promise<void> {
  const there = places.reduce((sum, { folder }) => sum + bytesBelow(folder), 0);
  const needed = bytes - there;
  const free = await freeBytes(output.partial);
  if (needed <= free) return;
  throw new TrawlError(
    'DISK_FULL',
    `${output.final}: ${what} need ${gigabytes(needed)} more on the disk, and ${gigabytes(free)} are free. Free space, or ` +
      'choose another place. trawl index --plan tells what each file takes.',
    { details: { neededBytes: needed, freeBytes: free } },
  );
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(bytes < 1e8 ? 4 : 2)} GB`;
}

function bytesBelow(folder: string): number {
  if (!existsSync(folder)) return 0;
  return readdirSync(folder).reduce((sum, name) => sum + bytesOf(join(folder, name)), 0);
}

function bytesOf(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true ? stats.size : 0;
}

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Metric } from '../../../src/engine/metric.ts';
import { openReferenceIndex } from '../../../src/engine/reference/reference-index.ts';
import { type ReferenceInput, referenceSearch } from '../../../src/engine/reference/reference-search.ts';
import type { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import { TopK } from '../../../src/engine/top-k.ts';
import { FlatIndexWriter } from '../../../src/engine/vectors/flat-index-writer.ts';
import {
  type IndexSource,
  placesPerQuery,
  type SearchResult,
  type ShardSource,
  type VectorIndex,
} from '../../../src/engine/vectors/vector-index.ts';
import { seededNormal, seededRandom } from '../../helpers/seeded-random.ts';

export interface Rows {
  readonly values: Float32Array;
  readonly dimension: number;
}

export function normalRows(count: number, dimension: number, seed: number): Rows {
  const normal = seededNormal(seed);
  return { values: Float32Array.from({ length: count * dimension }, () => normal()), dimension };
}

/** Values −1, 0 and 1, which give many equal scores. */
export function ternaryRows(count: number, dimension: number, seed: number): Rows {
  const random = seededRandom(seed);
  return { values: Float32Array.from({ length: count * dimension }, () => Math.floor(random() * 3) - 1), dimension };
}

/** Writes the rows as FAISS flat files, one a shard, of about equal size. */
export async function writeSource(
  folder: string,
  { values, dimension }: Rows,
  { metric = 'inner-product', shards = 1, liveRows }: { metric?: Metric; shards?: number; liveRows?: RowBitmap } = {},
): Promise<IndexSource> {
  const rows = values.length / dimension;
  const sources: ShardSource[] = [];
  for (let i = 0; i < shards; i++) {
    const firstRow = Math.floor((rows * i) / shards);
    const end = Math.floor((rows * (i + 1)) / shards);
    const path = join(folder, `vectors-${i}-of-${shards}.faiss`);
    const writer = await FlatIndexWriter.create(path, { rows: end - firstRow, dimension, metric });
    await writer.append(values.subarray(firstRow * dimension, end * dimension));
    sources.push({ firstRow, rows: end - firstRow, segments: [(await writer.finish()).segment] });
  }
  return { dimension, metric, rows, shards: sources, liveRows };
}

/** Writes the rows as a raw float32 file, without a check for NaN. */
export async function writeUnchecked(folder: string, { values, dimension }: Rows): Promise<IndexSource> {
  const path = join(folder, 'unchecked.f32');
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  await writeFile(path, bytes);
  const rows = values.length / dimension;
  const segments = [{ path, offset: 0, bytes: bytes.length, dtype: 'float32' as const }];
  return { dimension, metric: 'inner-product', rows, shards: [{ firstRow: 0, rows, segments }] };
}

export async function openForTest(t: TestContext, source: IndexSource, threads?: number): Promise<VectorIndex> {
  const index = await openReferenceIndex(source, threads === undefined ? {} : { threads });
  t.after(() => index.close());
  return index;
}

/** A search result in the form of `expectedHits`. */
export function hitsOf(result: SearchResult): { rows: number[]; scores: number[] }[] {
  const k = placesPerQuery(result);
  return Array.from(result.counts, (count, q) => ({
    rows: [...result.rows.subarray(q * k, q * k + count)],
    scores: [...result.scores.subarray(q * k, q * k + count)],
  }));
}

export function expectedHits(
  rows: Rows,
  queries: Rows,
  k: number,
  { metric = 'inner-product', filter }: { metric?: Metric; filter?: RowBitmap } = {},
): { rows: number[]; scores: number[] }[] {
  return referenceTopK(
    {
      rows: rows.values,
      rowCount: rows.values.length / rows.dimension,
      dimension: rows.dimension,
      metric,
      queries: queries.values,
      queryCount: queries.values.length / queries.dimension,
      filter,
    },
    k,
  );
}

/** Row numbers and float64 scores of each query's k best rows, best first. */
function referenceTopK(input: ReferenceInput, k: number): { rows: number[]; scores: number[] }[] {
  const heaps = Array.from({ length: input.queryCount }, () => new TopK(k));
  referenceSearch(input, heaps);
  return heaps.map((heap) => heap.sorted());
}

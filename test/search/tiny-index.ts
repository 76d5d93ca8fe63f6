import { writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { writeJsonDurably } from '../../src/base/system/durable-file.ts';
import type { Metric } from '../../src/engine/metric.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { FlatIndexWriter } from '../../src/engine/vectors/flat-index-writer.ts';
import { generationOf, type IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { type PassageToStore, SqlitePassageWriter } from '../../src/index/passages/sqlite-passage-writer.ts';
import { modelIdentity } from '../helpers/model-identity.ts';
import { sha256Of } from './opening/sha256-of.ts';

/**
 * Writes an index of 11 rows with many features of the format: two shards, vectors in a FAISS file and in files whose boundary
 * lies inside a row, a deleted row, ids and texts of all types.
 */
export const TINY_DIMENSION = 8;
export const TINY_ROWS = 11;
export const TINY_DELETED_ROW = 3;
const FIRST_SHARD_ROWS = 6;

export const TINY_DOCUMENTS: readonly string[] = [
  '{"id":"a-0","contents":"\\"First\\"\\nThe first passage."}',
  '{"id": 1, "title": "Second", "text": "Title and text apart.", "url": "https://example.org/1"}',
  '{"id":9007199254740993,"contents":"An id beyond 2^53.","weight":1.50}',
  '{"id":"3","contents":"A removed passage."}',
  '{"id":123456789012345678901234567890,"contents":"An id beyond 2^63."}',
  String.raw`{"id":"nul","contents":"a\u0000b \ud800"}`,
  '{"id":"💧","contents":"naïve Ω 漢字 \u2028"}',
  '{"id":null,"contents":"No id."}',
  '{"contents":"No id column."}',
  '{"id":"a-0","contents":"An id that was there before."}',
  '{"id":-7,"contents":""}',
];

const IDS: readonly PassageToStore['id'][] = [
  'a-0',
  1,
  9007199254740993n,
  '3',
  123456789012345678901234567890n,
  'nul',
  '💧',
  null,
  null,
  'a-0',
  -7,
];

/** Multiples of 1/16, so that scores are exact in any arithmetic. Rows 2 and 9 are equal. */
export function tinyRows(): Float32Array {
  const values = Float32Array.from({ length: TINY_ROWS * TINY_DIMENSION }, (_, i) => (((i * 37) % 101) - 50) / 16);
  values.copyWithin(9 * TINY_DIMENSION, 2 * TINY_DIMENSION, 3 * TINY_DIMENSION);
  return values;
}

const MODEL = modelIdentity({ name: 'no-model', dimension: TINY_DIMENSION, maxTokens: { query: 32, passage: 32 } });

export async function writeTinyIndex(folder: string, metric: Metric = 'inner-product'): Promise<void> {
  await mkdir(folder, { recursive: true });
  const shards = [
    await writeShard(join(folder, 'shard-00000'), metric, 0, FIRST_SHARD_ROWS),
    await writeShard(join(folder, 'shard-00001'), metric, FIRST_SHARD_ROWS, TINY_ROWS),
  ];
  const deleted = new RowBitmap(TINY_ROWS);
  deleted.add(TINY_DELETED_ROW);
  writeFileSync(join(folder, 'tombstones.bin'), deleted.bytes);
  const manifest: IndexManifest = {
    format: 'trawl-index',
    version: 1,
    generation: generationOf(['index', ...shards.map(({ generation }) => generation)]),
    rows: TINY_ROWS,
    dimension: TINY_DIMENSION,
    metric,
    model: { ...MODEL, similarity: metric },
    corpus: shards[0]!.corpus,
    shards: shards.map(({ rows, generation }, i) => ({
      path: `shard-0000${i}`,
      firstRow: i * FIRST_SHARD_ROWS,
      rows,
      generation,
    })),
    tombstones: { path: 'tombstones.bin', bytes: deleted.bytes.length, sha256: sha256Of(deleted.bytes), rows: 1 },
    writer: 'test/search/tiny-index.ts',
  };
  await writeJsonDurably(join(folder, 'manifest.json'), manifest);
}

async function writeShard(folder: string, metric: Metric, begin: number, end: number): Promise<ShardManifest> {
  await mkdir(folder);
  const passages = new SqlitePassageWriter(join(folder, 'passages.sqlite'));
  for (let row = begin; row < end; row++) {
    passages.append({ id: IDS[row]!, line: row + 1, document: TINY_DOCUMENTS[row]! });
  }
  const sha256 = passages.finishRows();
  passages.finish();
  const rows = tinyRows().slice(begin * TINY_DIMENSION, end * TINY_DIMENSION);
  const vectors = begin === 0 ? await writeFaiss(folder, metric, rows) : writeParts(folder, rows);
  const shard: ShardManifest = {
    format: 'trawl-shard',
    version: 1,
    generation: generationOf([begin, end, metric, sha256]),
    rows: end - begin,
    dimension: TINY_DIMENSION,
    metric,
    model: { ...MODEL, similarity: metric },
    corpus: {
      files: [{ name: 'tiny.jsonl', bytes: 1, sha256: '1'.repeat(64), passages: TINY_ROWS }],
      skippedLines: 0,
      duplicateIds: 1,
      truncatedPassages: 0,
      passageTemplate: '{contents}',
    },
    codes: null,
    passages: { path: 'passages.sqlite', sha256 },
    ...vectors,
  };
  await writeJsonDurably(join(folder, 'shard.json'), shard);
  return shard;
}

type Vectors = Pick<ShardManifest, 'vectors' | 'files'>;

async function writeFaiss(folder: string, metric: Metric, rows: Float32Array): Promise<Vectors> {
  const shape = { rows: rows.length / TINY_DIMENSION, dimension: TINY_DIMENSION, metric };
  const writer = await FlatIndexWriter.create(join(folder, 'vectors.faiss'), shape);
  await writer.append(rows);
  const { segment, fileBytes, sha256 } = await writer.finish();
  return {
    vectors: [{ ...segment, path: 'vectors.faiss' }],
    files: [{ path: 'vectors.faiss', bytes: fileBytes, sha256 }],
  };
}

/** Two files with their boundary inside a number; the second has other bytes before the rows. */
function writeParts(folder: string, rows: Float32Array): Vectors {
  const bytes = Buffer.from(rows.buffer);
  const cut = 2 * TINY_DIMENSION * 4 + 14;
  const second = Buffer.concat([Buffer.from('head'), bytes.subarray(cut)]);
  writeFileSync(join(folder, 'part_0'), bytes.subarray(0, cut));
  writeFileSync(join(folder, 'part_1'), second);
  return {
    vectors: [
      { path: 'part_0', offset: 0, bytes: cut, dtype: 'float32' },
      { path: 'part_1', offset: 4, bytes: bytes.length - cut, dtype: 'float32' },
    ],
    files: [
      { path: 'part_0', bytes: cut, sha256: sha256Of(bytes.subarray(0, cut)) },
      { path: 'part_1', bytes: second.length, sha256: sha256Of(second) },
    ],
  };
}

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { decodeFlatHeader, FAISS_HEADER_BYTES } from '../../../src/engine/vectors/faiss-format.ts';
import type { IndexSource } from '../../../src/engine/vectors/vector-index.ts';
import { readNpy } from '../../helpers/npy.ts';
import { runs } from '../../helpers/runs.ts';
import { sharedData, withoutSharedData } from '../../helpers/shared-data.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { expectedHits, hitsOf, openForTest, type Rows, writeSource } from './index-files.ts';

const E5 = 'flashrag_sample/e5_flat_sample.index';
const SCIFACT = 'scifact_tevatron_emb/faiss_golden_rank_top100.txt';

test('an index of real E5 vectors that FAISS wrote is searched in place', {
  skip: withoutSharedData(E5),
}, async (t) => {
  const path = sharedData(E5);
  const bytes = readFileSync(path);
  assert.equal(bytes.length, FAISS_HEADER_BYTES + 1000 * 768 * 4);
  const header = decodeFlatHeader(bytes, path);
  assert.deepEqual(header, { dimension: 768, rows: 1000, metric: 'inner-product' });
  const segments = [{ path, offset: FAISS_HEADER_BYTES, bytes: 1000 * 768 * 4, dtype: 'float32' as const }];
  const source: IndexSource = { ...header, shards: [{ firstRow: 0, rows: 1000, segments }] };
  const rows: Rows = { values: new Float32Array(bytes.buffer.slice(bytes.byteOffset + 45)), dimension: 768 };

  const index = await openForTest(t, source);
  const count = runs(200, 1_000);
  const result = await index.search({ queries: rows.values.subarray(0, count * 768), count, k: 10 });
  const first = { values: rows.values.subarray(0, 100 * 768), dimension: 768 };
  assert.deepEqual(hitsOf(result).slice(0, 100), expectedHits(rows, first, 10));
  // Of normalised vectors the row itself is the nearest.
  for (let row = 0; row < count; row++) assert.equal(result.rows[row * 10], row);
});

test('the top 100 of SciFact equal those that FAISS published, except for near-ties', {
  skip: withoutSharedData(SCIFACT),
}, async (t) => {
  const folder = 'scifact_tevatron_emb';
  const rows = readNpy(sharedData(`${folder}/corpus_768_f32.npy`));
  const queries = readNpy(sharedData(`${folder}/query_768_f32.npy`));
  const rowOfId = new Map(linesOf(`${folder}/corpus_ids.txt`).map((id, row) => [id, row]));
  const queryIds = linesOf(`${folder}/query_ids.txt`);
  const golden = new Map<string, { row: number; score: number }[]>();
  for (const line of linesOf(SCIFACT)) {
    const [query, document, score] = line.split('\t');
    const ofQuery = golden.get(query!) ?? [];
    ofQuery.push({ row: rowOfId.get(document!)!, score: Number(score) });
    golden.set(query!, ofQuery);
  }
  assert.deepEqual([rows.rows, queries.rows, golden.size], [5183, 1109, 1109]);

  const matrix = { values: rows.values, dimension: rows.columns };
  const index = await openForTest(t, await writeSource(await tempFolder(t), matrix));
  const k = 100;
  const count = runs(200, queries.rows);
  const result = await index.search({ queries: queries.values.subarray(0, count * queries.columns), count, k });
  let places = 0;
  let differing = 0;
  let widest = 0;
  for (const [q, queryId] of queryIds.slice(0, count).entries()) {
    const published = golden.get(queryId)!;
    assert.equal(published.length, k);
    for (const [rank, { row, score }] of published.entries()) {
      const ours = result.scores[q * k + rank]!;
      places++;
      assert.ok(Math.abs(ours - score) < 1e-5, `query ${queryId}, rank ${rank}: ${ours} and ${score}`);
      if (result.rows[q * k + rank] === row) continue;
      differing++;
      widest = Math.max(widest, Math.abs(ours - scoreOf(queries, q, rows, row)));
    }
  }
  t.diagnostic(`${differing} of ${places} places differ; there the exact scores are within ${widest.toExponential(1)}`);
  assert.equal(places, 100 * count);
  assert.ok(differing <= 25, `${differing} places differ`);
  assert.ok(widest < 1e-5);
});

function linesOf(path: string): string[] {
  return readFileSync(sharedData(path), 'utf8').trim().split('\n');
}

function scoreOf(
  queries: { values: Float32Array; columns: number },
  query: number,
  rows: { values: Float32Array; columns: number },
  row: number,
): number {
  let sum = 0;
  for (let j = 0; j < rows.columns; j++) {
    sum += queries.values[query * rows.columns + j]! * rows.values[row * rows.columns + j]!;
  }
  return sum;
}

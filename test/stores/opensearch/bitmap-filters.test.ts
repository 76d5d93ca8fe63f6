import assert from 'node:assert/strict';
import { test } from 'node:test';
import { referenceSearch } from '../../../src/engine/reference/reference-search.ts';
import { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import { TopK } from '../../../src/engine/top-k.ts';
import { MILVUS_SCORES } from '../../../src/stores/milvus/score-bound.ts';
import { CandidateIndex } from '../../../src/stores/published/candidate-index.ts';
import type { Candidates } from '../../../src/stores/published/candidate-source.ts';
import { normalRows } from '../../engine/vectors/index-files.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { FakeCandidates } from '../milvus/fake-candidates.ts';

const rows = 12_000;
const dimension = 8;
const metric = 'inner-product';
const { values } = normalRows(rows, dimension, 1);
const filter = new RowBitmap(rows);
const random = seededRandom(2);
for (let row = 0; row < rows; row++) if (random() < 0.5) filter.add(row);

function indexOf(damage?: (found: Candidates) => Candidates): { fake: FakeCandidates; index: CandidateIndex } {
  const fake = new FakeCandidates({
    values,
    dimension,
    metric,
    wrong: 0,
    takesBitmaps: true,
    damage,
  });
  const facts = { dimension, rows, metric, liveRows: undefined, scores: MILVUS_SCORES, scoresEveryRow: true } as const;
  return { fake, index: new CandidateIndex(fake, { ...facts, largestNorm: fake.largestNorm }) };
}

test('a store that takes sets of rows gets the rows that pass a filter, and is asked once', async () => {
  const queries = normalRows(1, dimension, 9).values;
  const { fake, index } = indexOf();
  const { rows: found, scores } = await index.search({ queries, count: 1, k: 20, filter });
  const heap = new TopK(20);
  referenceSearch({ rows: values, rowCount: rows, dimension, metric, queries, queryCount: 1, filter }, [heap]);
  assert.deepEqual([...found], heap.sorted().rows);
  assert.deepEqual([...scores], heap.sorted().scores);
  assert.deepEqual(
    fake.asked.map(({ condition: { type }, limit }) => [type, limit]),
    [['bitmap', 52]],
  );
});

test('a list among another number of rows than there must be is refused', async () => {
  const queries = normalRows(1, dimension, 9).values;
  const { index } = indexOf((found) => ({ ...found, total: filter.count() - 1 }));
  const search = index.search({ queries, count: 1, k: 20, filter });
  await assert.rejects(search, trawlError('STORE_FAILED', /candidates of/));
});

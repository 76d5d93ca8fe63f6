import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { perturbedRows, queriesOfFile } from '../../../bench/flat/queries.ts';
import { decodeNpy, encodeNpy } from '../../../bench/vectors/npy.ts';
import { openVectorFile } from '../../../bench/vectors/vector-file.ts';
import { TrawlError } from '../../../src/base/errors.ts';
import { encodeFlatHeader } from '../../../src/engine/vectors/faiss-format.ts';
import { sharedData, withoutSharedData } from '../../helpers/shared-data.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const SCIFACT_QUERIES = 'scifact_tevatron_emb/query_768_f32.npy';

const withCode = (code: string) => (error: unknown) => error instanceof TrawlError && error.code === code;

async function vectorFile(t: TestContext, metric: 'inner-product' | 'l2' = 'inner-product'): Promise<string> {
  const path = join(await tempFolder(t), 'vectors.faiss');
  const rows = Float32Array.from({ length: 8 * 4 }, (_, i) => (i % 5) - 2);
  await writeFile(path, Buffer.concat([encodeFlatHeader({ rows: 8, dimension: 4, metric }), Buffer.from(rows.buffer)]));
  return path;
}

test('a matrix that is written and read is unchanged', () => {
  const matrix = { rows: 3, columns: 2, values: new Float32Array([1, -2, 3.5, 0, 1e-40, 7]) };
  const bytes = encodeNpy(matrix);
  assert.equal((bytes.length - 24) % 64, 0);
  assert.deepEqual(decodeNpy(bytes, 'x.npy'), matrix);
});

test('an array that numpy wrote is read', { skip: withoutSharedData(SCIFACT_QUERIES) }, async () => {
  const queries = await queriesOfFile(sharedData(SCIFACT_QUERIES), 768);
  assert.equal(queries.rows, 1109);
  assert.equal(queries.values.length, 1109 * 768);
});

test('a file that is not a float32 matrix is refused', async (t) => {
  const good = Buffer.from(encodeNpy({ rows: 2, columns: 2, values: new Float32Array(4) }));
  const bad = [
    Buffer.from('no array'),
    good.subarray(0, -1),
    Buffer.from(good.toString('latin1').replace('<f4', '<f8'), 'latin1'),
    Buffer.from(good.toString('latin1').replace('False', 'True '), 'latin1'),
    Buffer.from(good.toString('latin1').replace('(2, 2)', '(4,)  '), 'latin1'),
  ];
  for (const bytes of bad) assert.throws(() => decodeNpy(bytes, 'x.npy'), withCode('INDEX_FILE_FOREIGN'));
  const path = join(await tempFolder(t), 'queries.npy');
  await writeFile(path, encodeNpy({ rows: 1, columns: 2, values: new Float32Array([1, Number.NaN]) }));
  await assert.rejects(queriesOfFile(path, 2), withCode('NON_FINITE_QUERY'));
  await assert.rejects(queriesOfFile(path, 3), withCode('DIMENSION_MISMATCH'));
  await assert.rejects(queriesOfFile(`${path}.gone`, 2), withCode('INDEX_FILE_MISSING'));
});

test('perturbed rows depend only on the seed and are finite', async (t) => {
  const file = openVectorFile(await vectorFile(t));
  const queries = perturbedRows(file, 20, 1);
  assert.deepEqual(perturbedRows(file, 20, 1), queries);
  assert.notDeepEqual(perturbedRows(file, 20, 2), queries);
  assert.ok(queries.values.every(Number.isFinite));
});

test('an L2 file and a missing file are refused', async (t) => {
  const l2 = await vectorFile(t, 'l2');
  assert.throws(() => openVectorFile(l2), withCode('INDEX_FILE_FOREIGN'));
  assert.throws(() => openVectorFile(`${l2}.gone`), withCode('INDEX_FILE_MISSING'));
});

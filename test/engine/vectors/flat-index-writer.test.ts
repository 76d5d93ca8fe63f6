import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { decodeFlatHeader } from '../../../src/engine/vectors/faiss-format.ts';
import { FlatIndexWriter } from '../../../src/engine/vectors/flat-index-writer.ts';
import { SegmentReader } from '../../../src/engine/vectors/vector-segments.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { normalRows } from './index-files.ts';

const SHAPE = { rows: 7, dimension: 5, metric: 'l2' } as const;

test('rows appended in blocks are in the file in order, and its size and checksum are as reported', async (t) => {
  const path = join(await tempFolder(t), 'v.faiss');
  const { values } = normalRows(7, 5, 1);
  const writer = await FlatIndexWriter.create(path, SHAPE);
  for (const [begin, end] of [
    [0, 0],
    [0, 3],
    [3, 4],
    [4, 7],
  ] as const) {
    await writer.append(values.subarray(begin * 5, end * 5));
    assert.equal(writer.rowsWritten, end);
  }
  const { segment, fileBytes, sha256 } = await writer.finish();
  const bytes = readFileSync(path);
  assert.equal(bytes.length, fileBytes);
  assert.equal(createHash('sha256').update(bytes).digest('hex'), sha256);
  assert.deepEqual(decodeFlatHeader(bytes, path), SHAPE);
  assert.deepEqual(segment, { path, offset: 45, bytes: 140, dtype: 'float32' });
  assert.deepEqual(bytes.subarray(45), Buffer.from(values.buffer));
  const reader = new SegmentReader([segment], 5);
  t.after(() => reader.close());
  const read = new Float32Array(35);
  reader.read(0, 7, read);
  assert.deepEqual(read, values);
});

test('the file of an index without rows is only a header', async (t) => {
  const path = join(await tempFolder(t), 'v.faiss');
  const writer = await FlatIndexWriter.create(path, { ...SHAPE, rows: 0 });
  const { fileBytes } = await writer.finish();
  assert.equal(fileBytes, 45);
  assert.equal(statSync(path).size, 45);
});

for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
  test(`a row that holds ${bad} is refused with row and column, and nothing of its block is written`, async (t) => {
    const path = join(await tempFolder(t), 'v.faiss');
    const writer = await FlatIndexWriter.create(path, SHAPE);
    t.after(() => writer.abandon());
    await writer.append(new Float32Array(15));
    const block = new Float32Array(10);
    block[5 + 4] = bad;
    await assert.rejects(writer.append(block), (error: Error & { details?: unknown }) => {
      assert.deepEqual(error.details, { row: 4, column: 4 });
      return trawlError('NON_FINITE_VECTOR', new RegExp(`row 4 has ${bad} in column 4`))(error);
    });
    assert.equal(writer.rowsWritten, 3);
    assert.equal(statSync(path).size, 45 + 60);
  });
}

test('denormals, zeros of both signs and the largest values are stored unchanged', async (t) => {
  const path = join(await tempFolder(t), 'v.faiss');
  const values = Float32Array.of(2 ** -149, -(2 ** -149), -0, 0, 3.4028234663852886e38);
  const writer = await FlatIndexWriter.create(path, { ...SHAPE, rows: 1 });
  await writer.append(values);
  await writer.finish();
  assert.deepEqual(readFileSync(path).subarray(45), Buffer.from(values.buffer));
});

test('a part of a row, and more rows than `create` was called with, are refused as bugs', async (t) => {
  const writer = await FlatIndexWriter.create(join(await tempFolder(t), 'v.faiss'), SHAPE);
  t.after(() => writer.abandon());
  await assert.rejects(writer.append(new Float32Array(6)), trawlError('INTERNAL', /This is a bug/));
  await assert.rejects(writer.append(new Float32Array(40)), trawlError('INTERNAL', /This is a bug/));
  assert.equal(writer.rowsWritten, 0);
});

test('finishing early is refused as a bug, and the writer can still be abandoned, twice', async (t) => {
  const writer = await FlatIndexWriter.create(join(await tempFolder(t), 'v.faiss'), SHAPE);
  await writer.append(new Float32Array(30));
  await assert.rejects(writer.finish(), trawlError('INTERNAL', /6 of 7 rows written/));
  await writer.abandon();
  await writer.abandon();
});

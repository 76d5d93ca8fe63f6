import assert from 'node:assert/strict';
import { truncateSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { SegmentReader, type VectorDtype, type VectorSegment } from '../../../src/engine/vectors/vector-segments.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { normalRows } from './index-files.ts';

interface Cut {
  /** Byte at which the next segment begins. */
  readonly at: number;
  /** Other bytes before and after the segment in its file. */
  readonly before: number;
  readonly after: number;
}

/** Splits bytes into files, one for each cut. */
async function writeSegments(
  folder: string,
  bytes: Uint8Array,
  cuts: readonly Cut[],
  dtype: VectorDtype = 'float32',
): Promise<VectorSegment[]> {
  const ends = [...cuts.slice(1).map(({ at }) => at), bytes.length];
  return Promise.all(
    cuts.map(async ({ at, before, after }, i): Promise<VectorSegment> => {
      const path = join(folder, `part_${i}`);
      const part = bytes.subarray(at, ends[i]);
      await writeFile(path, Buffer.concat([Buffer.alloc(before, 0xaa), part, Buffer.alloc(after, 0xbb)]));
      return { path, offset: before, bytes: part.length, dtype };
    }),
  );
}

function bytesOf(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

test('rows are read however they are split into files, even inside a row or a number, and at any offset', async (t) => {
  const folder = await tempFolder(t);
  const { values, dimension } = normalRows(23, 7, 5);
  const bytes = bytesOf(values);
  const cuts = fc
    .array(fc.tuple(fc.nat(bytes.length), fc.nat(70), fc.nat(9)), { minLength: 0, maxLength: 5 })
    .map((found): Cut[] =>
      [[0, 45, 0] as [number, number, number], ...found]
        .sort(([a], [b]) => a - b)
        .map(([at, before, after]) => ({ at, before, after })),
    );
  const ranges = fc.tuple(fc.nat(23), fc.nat(23)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
  await fc.assert(
    fc.asyncProperty(cuts, fc.array(ranges, { minLength: 1, maxLength: 5 }), async (where, wanted) => {
      const reader = new SegmentReader(await writeSegments(folder, bytes, where), dimension);
      try {
        assert.equal(reader.rows, 23);
        for (const [begin, end] of wanted) {
          const target = new Float32Array((end - begin) * dimension);
          reader.read(begin, end - begin, target);
          assert.deepEqual(target, values.slice(begin * dimension, end * dimension));
        }
      } finally {
        reader.close();
      }
    }),
    { numRuns: 60 },
  );
});

test('float16 rows are widened, also where a file ends inside a number', async (t) => {
  const folder = await tempFolder(t);
  // 1, −2, 0.5 and 65504, −2^-24, 3
  const bytes = new Uint8Array(Uint16Array.of(0x3c00, 0xc000, 0x3800, 0x7bff, 0x8001, 0x4200).buffer);
  const cuts = [
    { at: 0, before: 3, after: 1 },
    { at: 5, before: 0, after: 2 },
  ];
  const reader = new SegmentReader(await writeSegments(folder, bytes, cuts, 'float16'), 3);
  t.after(() => reader.close());
  assert.equal(reader.rows, 2);
  const all = new Float32Array(6);
  reader.read(0, 2, all);
  assert.deepEqual([...all], [1, -2, 0.5, 65_504, -(2 ** -24), 3]);
  const second = new Float32Array(3);
  reader.read(1, 1, second);
  assert.deepEqual([...second], [65_504, -(2 ** -24), 3]);
});

test('a target that is part of a larger buffer is filled and nothing beside it', async (t) => {
  const { values } = normalRows(3, 2, 8);
  const segments = await writeSegments(await tempFolder(t), bytesOf(values), [{ at: 0, before: 1, after: 0 }]);
  const reader = new SegmentReader(segments, 2);
  t.after(() => reader.close());
  const buffer = new Float32Array(8).fill(9);
  reader.read(1, 2, buffer.subarray(2, 6));
  assert.deepEqual([...buffer], [9, 9, ...values.subarray(2, 6), 9, 9]);
  assert.throws(() => reader.read(0, 3, buffer.subarray(0, 4)), RangeError, 'no room in the view');
  assert.deepEqual([...buffer.subarray(4)], [...values.subarray(4, 6), 9, 9], 'nothing was written past the view');
});

test('rows out of range are a RangeError', async (t) => {
  const segments = await writeSegments(await tempFolder(t), new Uint8Array(24), [{ at: 0, before: 0, after: 8 }]);
  const reader = new SegmentReader(segments, 2);
  t.after(() => reader.close());
  assert.throws(() => reader.read(3, 1, new Float32Array(2)), RangeError);
  assert.throws(() => reader.read(-1, 1, new Float32Array(2)), RangeError);
  assert.throws(() => reader.read(1, 3, new Float32Array(6)), RangeError);
  reader.read(3, 0, new Float32Array(0));
});

test('without segments there are no rows', () => {
  const reader = new SegmentReader([], 4);
  assert.equal(reader.rows, 0);
  reader.read(0, 0, new Float32Array(0));
  reader.close();
});

test('a missing file is named', async (t) => {
  const folder = await tempFolder(t);
  const [first] = await writeSegments(folder, new Uint8Array(8), [{ at: 0, before: 0, after: 0 }]);
  const segments = [first!, { ...first!, path: join(folder, 'gone') }];
  assert.throws(() => new SegmentReader(segments, 2), trawlError('INDEX_FILE_MISSING', /\/gone: cannot be opened/));
});

test('a file that ends before its rows, even by one byte, is refused by name', async (t) => {
  const folder = await tempFolder(t);
  const segments = await writeSegments(folder, new Uint8Array(32), [
    { at: 0, before: 45, after: 0 },
    { at: 13, before: 2, after: 0 },
  ]);
  new SegmentReader(segments, 2).close();
  truncateSync(segments[1]!.path, 20);
  assert.throws(
    () => new SegmentReader(segments, 2),
    trawlError('INDEX_FILE_TRUNCATED', /part_1: ends before byte 21/),
  );
});

test('a file that becomes shorter while it is open is refused as truncated, not read as zeros', async (t) => {
  const folder = await tempFolder(t);
  const segments = await writeSegments(folder, new Uint8Array(64), [{ at: 0, before: 0, after: 0 }]);
  const reader = new SegmentReader(segments, 2);
  t.after(() => reader.close());
  truncateSync(segments[0]!.path, 30);
  assert.throws(() => reader.read(0, 8, new Float32Array(16)), trawlError('INDEX_FILE_TRUNCATED', /part_0/));
});

test('a folder instead of a file is refused by name', async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'vectors'));
  const segment = { path: join(folder, 'vectors'), offset: 0, bytes: 2 ** 20, dtype: 'float32' as const };
  assert.throws(() => new SegmentReader([segment], 4), trawlError('INDEX_FILE_TRUNCATED', /vectors/));
});

test('a part of a row, and mixed types, are refused as a bad manifest', async (t) => {
  const folder = await tempFolder(t);
  const [whole] = await writeSegments(folder, new Uint8Array(24), [{ at: 0, before: 0, after: 0 }]);
  assert.throws(
    () => new SegmentReader([{ ...whole!, bytes: 20 }], 2),
    trawlError('INDEX_MANIFEST_INVALID', /20 bytes/),
  );
  assert.throws(
    () => new SegmentReader([whole!, { ...whole!, dtype: 'float16' }], 2),
    trawlError('INDEX_MANIFEST_INVALID'),
  );
});

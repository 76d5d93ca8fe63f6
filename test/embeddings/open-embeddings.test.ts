import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { cutSegments } from '../../embeddings/embedding-set.ts';
import { openEmbeddings } from '../../embeddings/open-embeddings.ts';
import { readPickledArrays } from '../../embeddings/pickled-arrays.ts';
import { TrawlError } from '../../src/errors.ts';
import { packageRoot } from '../../src/package-root.ts';
import { encodeFlatHeader } from '../../src/vector-index/faiss-format.ts';
import { SegmentReader } from '../../src/vector-index/vector-segments.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import {
  bytesOf,
  fileBytes,
  halfValues,
  KINDS,
  type Kind,
  npyHeader,
  segmentBytes,
  writeVectors,
} from './vector-files.ts';

const ROWS = 37;
const DIMENSION = 6;
const values = halfValues(ROWS, DIMENSION);

function optionsOf(kind: Kind) {
  return { dimension: DIMENSION, dtype: kind.endsWith('fp16') ? 'float16' : 'float32' } as const;
}

for (const kind of KINDS) {
  test(`${kind}: every row is where the segments say, in one file and cut anywhere into pieces`, async (t) => {
    const folder = await tempFolder(t);
    const bytes = fileBytes(kind, values, DIMENSION);
    const valueBytes = kind.endsWith('fp16') ? 2 : 4;
    const header = bytes.length - ROWS * DIMENSION * valueBytes;
    for (const cuts of [[], [header + 7], [header + 1, header + 2, header + 100], [header]]) {
      const paths = writeVectors(folder, 'emb', bytes, cuts);
      const set = openEmbeddings(paths, optionsOf(kind));
      assert.deepEqual([set.rows, set.dimension, set.dtype], [ROWS, DIMENSION, optionsOf(kind).dtype]);
      assert.deepEqual(segmentBytes(set.segments), bytes.subarray(header));
      const reader = new SegmentReader(set.segments, DIMENSION);
      const read = new Float32Array(values.length);
      reader.read(0, ROWS, read);
      reader.close();
      assert.deepEqual(read, values);
      // A shard's part, wherever pieces end.
      const part = cutSegments(set, 5, 9);
      const rowBytes = DIMENSION * valueBytes;
      assert.deepEqual(segmentBytes(part), bytes.subarray(header + 5 * rowBytes, header + 14 * rowBytes));
      for (const path of paths) rmSync(path);
    }
  });
}

test('a header is read in versions 1 to 3 of .npy, whatever the order of its keys', async (t) => {
  const folder = await tempFolder(t);
  for (const version of [1, 2, 3] as const) {
    const header = npyHeader({ version, shape: `${ROWS}, ${DIMENSION}` });
    const [path] = writeVectors(folder, `v${version}.npy`, Buffer.concat([header, bytesOf(values)]));
    assert.equal(openEmbeddings([path!], { dimension: DIMENSION }).rows, ROWS);
  }
  const text = `{'shape': (${ROWS}, ${DIMENSION}), 'fortran_order': False, 'descr': '<f4'}\n`;
  const head = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, text.length, 0]);
  const [path] = writeVectors(folder, 'order.npy', Buffer.concat([head, Buffer.from(text), bytesOf(values)]));
  assert.equal(openEmbeddings([path!], { dimension: DIMENSION }).rows, ROWS);
});

test('a folder gives its pieces in order, numbers by value; a pattern the files that fit; whole files follow each other', async (t) => {
  const folder = await tempFolder(t);
  const bytes = fileBytes('faiss', values, DIMENSION);
  const pieces = join(folder, 'pieces');
  mkdirSync(pieces);
  writeVectors(pieces, '', bytes, [100, 300]);
  writeFileSync(join(pieces, 'README.md'), 'no vectors');
  assert.deepEqual(segmentBytes(openEmbeddings([pieces], { dimension: DIMENSION }).segments), bytes.subarray(45));
  const split = join(folder, 'split');
  mkdirSync(split);
  for (let i = 0; i < 12; i++) {
    const rows = halfValues(2, DIMENSION, i);
    writeFileSync(join(split, `emb_${i}.npy`), fileBytes('npy', rows, DIMENSION));
  }
  const expected = Buffer.concat(Array.from({ length: 12 }, (_, i) => bytesOf(halfValues(2, DIMENSION, i))));
  for (const paths of [[split], [join(split, 'emb_*.npy')], [join(split, 'emb_?.npy'), join(split, 'emb_??.npy')]]) {
    const set = openEmbeddings(paths, { dimension: DIMENSION });
    assert.deepEqual([set.rows, segmentBytes(set.segments)], [24, expected]);
  }
});

test('what cannot be used is refused by name, with the way out', async (t) => {
  const folder = await tempFolder(t);
  const shape = `${ROWS}, ${DIMENSION}`;
  const npy = (header: Parameters<typeof npyHeader>[0], rest: Uint8Array = bytesOf(values)): Buffer =>
    Buffer.concat([npyHeader({ shape, ...header }), rest]);
  const faiss = fileBytes('faiss', values, DIMENSION);
  const fourcc = (name: string): Buffer => Buffer.concat([Buffer.from(name), faiss.subarray(4)]);
  const huge = Buffer.from(encodeFlatHeader({ rows: 1, dimension: 1, metric: 'inner-product' }));
  // n·d = 2^64 + 1, which wraps to 1.
  huge.writeInt32LE(2 ** 31 - 1, 4);
  huge.writeBigInt64LE(8_589_934_596n, 8);
  const wrapped = Buffer.concat([huge, Buffer.alloc(4)]);
  const cases: readonly [string, Uint8Array, Parameters<typeof trawlError>[0], RegExp][] = [
    ['fortran', npy({ fortranOrder: true }), 'VECTORS_UNSUPPORTED', /Fortran order.*np\.ascontiguousarray/],
    ['big-endian', npy({ descr: "'>f4'" }), 'VECTORS_UNSUPPORTED', /big-endian values \(>f4\).*dtype='<f4'/],
    ['float64', npy({ descr: "'<f8'" }), 'VECTORS_UNSUPPORTED', /float64 \(<f8\)/],
    ['object', npy({ descr: "'|O'" }), 'VECTORS_UNSUPPORTED', /Python objects/],
    ['records', npy({ descr: "[('a', '<f4')]" }), 'VECTORS_UNSUPPORTED', /records/],
    ['one dimension', npy({ shape: '222,' }), 'VECTORS_UNSUPPORTED', /shape \(222,\); rows × dimension/],
    ['overflowing shape', npy({ shape: '4611686018427387905, 4' }), 'VECTORS_INVALID', /is none/],
    ['large shape', npy({ shape: '900000000000000, 900000000000000' }), 'VECTORS_INVALID', /more than any file has/],
    ['negative shape', npy({ shape: '-1, 6' }), 'VECTORS_INVALID', /the shape \(-1, 6\) is none/],
    ['no columns', npy({ shape: '37, 0' }), 'VECTORS_INVALID', /the shape is \(37, 0\)/],
    ['no rows', npy({ shape: '0, 6' }, new Uint8Array()), 'VECTORS_INVALID', /holds no row/],
    [
      'short .npy',
      npy({}).subarray(0, 900),
      'VECTORS_INVALID',
      /37 rows of 6 float32, which is 1016 bytes, but there are 900/,
    ],
    ['long .npy', Buffer.concat([npy({}), Buffer.alloc(1)]), 'VECTORS_INVALID', /1016 bytes, but the file has 1017/],
    [
      '.npy of version 9',
      Buffer.concat([Buffer.from('\x93NUMPY\x09\x00', 'latin1'), npy({}).subarray(8)]),
      'VECTORS_INVALID',
      /version 9\.0/,
    ],
    [
      '.npy of a header alone',
      npy({}).subarray(0, 11),
      'VECTORS_INVALID',
      /has 11 bytes, but says that its .npy header has/,
    ],
    ['short faiss', faiss.subarray(0, 800), 'VECTORS_INVALID', /933 bytes, but there are 800.*part_aa part_ab/],
    ['long faiss', Buffer.concat([faiss, Buffer.alloc(3)]), 'VECTORS_INVALID', /933 bytes, but the file has 936/],
    ['faiss that wraps', wrapped, 'VECTORS_INVALID', /floats for 8589934596 rows/],
    ['hnsw', fourcc('IHNf'), 'VECTORS_UNSUPPORTED', /HNSW index of FAISS.*reconstruct_n/],
    ['another faiss', fourcc('IxZZ'), 'VECTORS_UNSUPPORTED', /begins with "IxZZ"/],
    ['pickle', Buffer.from([0x80, 4, 0x95, 0, 0, 0, 0, 0]), 'PICKLE_INVALID', /pickle: /],
    [
      'memmap',
      Buffer.alloc(6 * 4 * 10 + 5),
      'VECTORS_INVALID',
      /245 bytes .* no whole number of rows of 6 float32 \(24 bytes each; 5 are left over\)/,
    ],
    ['nothing', new Uint8Array(), 'VECTORS_INVALID', /is empty/],
  ];
  for (const [name, bytes, code, message] of cases) {
    const [path] = writeVectors(folder, name, bytes);
    assert.throws(() => openEmbeddings([path!], { dimension: DIMENSION }), trawlError(code, message), name);
  }
  const [whole] = writeVectors(folder, 'whole.npy', npy({}));
  const [other] = writeVectors(folder, 'other.npy', npy({ shape: `${(ROWS * DIMENSION) / 3}, 3` }));
  for (const [paths, code, message] of [
    [[join(folder, 'absent')], 'VECTORS_NOT_FOUND', /absent is not there/],
    [[join(folder, 'absent*')], 'VECTORS_NOT_FOUND', /no file fits/],
    [[whole!, whole!], 'VECTORS_NOT_FOUND', /is named twice/],
    [['/dev/null'], 'VECTORS_NOT_FOUND', /no regular file/],
    [[whole!, other!], 'VECTORS_INVALID', /other\.npy: does not go on with the files before: dimension 6, then 3/],
  ] as const) {
    assert.throws(() => openEmbeddings(paths, { dimension: DIMENSION }), trawlError(code, message));
  }
});

test('pickles are used in place, with their ids, as readPickledArrays finds them', () => {
  const fixture = (name: string): string => join(packageRoot, 'test', 'embeddings', 'fixtures', `${name}.pickle`);
  for (const name of ['array-4', 'list-4', 'tevatron-4', 'integer-ids'].filter((each) => existsSync(fixture(each)))) {
    const { arrays, ids } = readPickledArrays(fixture(name));
    const set = openEmbeddings([fixture(name)], { dimension: 99 });
    assert.deepEqual([set.formats, set.ids ?? null], [['pickle'], ids]);
    assert.deepEqual(
      set.segments.map(({ offset, bytes }) => [offset, bytes]),
      arrays.filter(({ bytes }) => bytes > 0).map(({ offset, bytes }) => [offset, bytes]),
    );
  }
  const twice = openEmbeddings([fixture('array-4'), fixture('array-5')], { dimension: 99 });
  assert.equal(twice.rows, 2 * openEmbeddings([fixture('array-4')], { dimension: 99 }).rows);
  assert.throws(() => openEmbeddings([fixture('harmful')], { dimension: 99 }), trawlError('PICKLE_UNSAFE'));
});

test('damaged files give a named error or rows that are all there, never anything else', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'damaged');
  let refused = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...KINDS),
      fc.array(fc.record({ at: fc.nat(140), byte: fc.nat(255) }), { maxLength: 4 }),
      fc.option(fc.nat(1100), { freq: 2 }),
      (kind, changes, length) => {
        const bytes = Buffer.from(fileBytes(kind, values, DIMENSION));
        for (const { at, byte } of changes) bytes[at] = byte;
        const written = length === null ? bytes : bytes.subarray(0, length);
        writeFileSync(path, written);
        try {
          const set = openEmbeddings([path], optionsOf(kind));
          const valueBytes = set.dtype === 'float16' ? 2 : 4;
          const rowBytes = set.segments.reduce((sum, segment) => sum + segment.bytes, 0);
          assert.equal(rowBytes, set.rows * set.dimension * valueBytes);
          for (const segment of set.segments) assert.ok(segment.offset + segment.bytes <= written.length);
        } catch (error) {
          assert.ok(error instanceof TrawlError, String(error));
          assert.match(error.code, /^(VECTORS|PICKLE)_/);
          assert.match(error.message, /damaged/);
          refused++;
        }
      },
    ),
    { seed: 6, numRuns: 1500 },
  );
  assert.ok(refused > 500, `${refused} of 1500 were refused`);
});

test('published files are read: FAISS of FlashRAG, .npy of tevatron', {
  skip: withoutSharedData('flashrag_sample'),
}, () => {
  const faiss = openEmbeddings([sharedData('flashrag_sample/e5_flat_sample.index')], { dimension: 768 });
  assert.deepEqual([faiss.rows, faiss.dimension, faiss.metric, faiss.formats], [1000, 768, 'inner-product', ['faiss']]);
  assert.throws(
    () => openEmbeddings([sharedData('flashrag_sample/wiki_sample.index')], { dimension: 768 }),
    trawlError('VECTORS_UNSUPPORTED', /IVF-PQ/),
  );
  const npy = openEmbeddings([sharedData('scifact_tevatron_emb/corpus_768_f32.npy')], { dimension: 768 });
  const ids = readFileSync(sharedData('scifact_tevatron_emb/corpus_ids.txt'), 'utf8').trim().split('\n');
  assert.deepEqual([npy.rows, npy.dimension], [ids.length, 768]);
});

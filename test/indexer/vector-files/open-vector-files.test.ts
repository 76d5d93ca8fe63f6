import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { openVectorFiles } from '../../../indexer/vector-files/open-vector-files.ts';
import { readPickledArrays } from '../../../indexer/vector-files/pickled-arrays.ts';
import { cutSegments, type VectorFileSet } from '../../../indexer/vector-files/vector-file-set.ts';
import { TrawlError } from '../../../src/base/errors.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { encodeFlatHeader } from '../../../src/engine/vectors/faiss-format.ts';
import { SegmentReader } from '../../../src/engine/vectors/vector-segments.ts';
import { runs } from '../../helpers/runs.ts';
import { sharedData, withoutSharedData } from '../../helpers/shared-data.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import {
  bytesOf,
  FILE_TYPES,
  type FileType,
  fileBytes,
  halfValues,
  type NpyHeader,
  npyHeader,
  segmentBytes,
  writeVectors,
} from './vector-files.ts';

/** Damaged files. */
const COUNT = runs(400, 1_500);
const ROWS = 37;
const DIMENSION = 6;
const values = halfValues(ROWS, DIMENSION);

function optionsOf(fileType: FileType) {
  return { dimension: DIMENSION, dtype: fileType.endsWith('fp16') ? 'float16' : 'float32' } as const;
}

for (const fileType of FILE_TYPES) {
  test(`${fileType}: the segments give every row, in one file or split anywhere into parts`, async (t) => {
    const folder = await tempFolder(t);
    const bytes = fileBytes(fileType, values, DIMENSION);
    const valueBytes = fileType.endsWith('fp16') ? 2 : 4;
    const header = bytes.length - ROWS * DIMENSION * valueBytes;
    for (const cuts of [[], [header + 7], [header + 1, header + 2, header + 100], [header]]) {
      const paths = writeVectors(folder, 'emb', bytes, cuts);
      const set = await openVectorFiles(paths, optionsOf(fileType));
      assert.deepEqual([set.rows, set.dimension, set.dtype], [ROWS, DIMENSION, optionsOf(fileType).dtype]);
      assert.deepEqual(segmentBytes(set.segments), bytes.subarray(header));
      const reader = new SegmentReader(set.segments, DIMENSION);
      const read = new Float32Array(values.length);
      reader.read(0, ROWS, read);
      reader.close();
      assert.deepEqual(read, values);
      // The rows of a shard, wherever files end.
      const part = cutSegments(set, 5, 9);
      const rowBytes = DIMENSION * valueBytes;
      assert.deepEqual(segmentBytes(part), bytes.subarray(header + 5 * rowBytes, header + 14 * rowBytes));
      for (const path of paths) rmSync(path);
    }
  });
}

test('.npy headers of versions 1 to 3 are read, with their keys in any order', async (t) => {
  const folder = await tempFolder(t);
  for (const version of [1, 2, 3] as const) {
    const header = npyHeader({ version, shape: `${ROWS}, ${DIMENSION}` });
    const [path] = writeVectors(folder, `v${version}.npy`, Buffer.concat([header, bytesOf(values)]));
    assert.equal((await openVectorFiles([path!], { dimension: DIMENSION })).rows, ROWS);
  }
  const text = `{'shape': (${ROWS}, ${DIMENSION}), 'fortran_order': False, 'descr': '<f4'}\n`;
  const head = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, text.length, 0]);
  const [path] = writeVectors(folder, 'order.npy', Buffer.concat([head, Buffer.from(text), bytesOf(values)]));
  assert.equal((await openVectorFiles([path!], { dimension: DIMENSION })).rows, ROWS);
});

test('the parts in a folder, the files of a pattern and several whole files are joined in order, numbers by value', async (t) => {
  const folder = await tempFolder(t);
  const bytes = fileBytes('faiss', values, DIMENSION);
  const pieces = join(folder, 'pieces');
  mkdirSync(pieces);
  writeVectors(pieces, '', bytes, [100, 300]);
  writeFileSync(join(pieces, 'README.md'), 'no vectors');
  assert.deepEqual(
    segmentBytes((await openVectorFiles([pieces], { dimension: DIMENSION })).segments),
    bytes.subarray(45),
  );
  const split = join(folder, 'split');
  mkdirSync(split);
  for (let i = 0; i < 12; i++) {
    const rows = halfValues(2, DIMENSION, i);
    writeFileSync(join(split, `emb_${i}.npy`), fileBytes('npy', rows, DIMENSION));
  }
  const expected = Buffer.concat(Array.from({ length: 12 }, (_, i) => bytesOf(halfValues(2, DIMENSION, i))));
  for (const paths of [[split], [join(split, 'emb_*.npy')], [join(split, 'emb_?.npy'), join(split, 'emb_??.npy')]]) {
    const set = await openVectorFiles(paths, { dimension: DIMENSION });
    assert.deepEqual([set.rows, segmentBytes(set.segments)], [24, expected]);
  }
});

/** An ID map around the file of an index. */
function idMap(inner: Uint8Array, ids: readonly number[], fourcc = 'IxMp'): Buffer {
  const outer = Buffer.from(
    encodeFlatHeader({ rows: ROWS, dimension: DIMENSION, metric: 'inner-product' }).subarray(0, 37),
  );
  outer.write(fourcc);
  const numbers = [BigInt(ids.length), ...ids.map(BigInt)];
  return Buffer.concat([outer, inner, new Uint8Array(BigInt64Array.from(numbers).buffer)]);
}

const tensor = (dtype: string): object => ({ dtype, shape: [ROWS, DIMENSION], data_offsets: [0, values.byteLength] });

function safetensors(tensors: object): Buffer {
  const header = Buffer.from(JSON.stringify({ __metadata__: { format: 'pt' }, ...tensors }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, bytesOf(values)]);
}

/** An archive as numpy.savez writes it, with zip64 sizes; `method` 8 would be compressed. */
function npz(members: Readonly<Record<string, Uint8Array>>, method = 0): Buffer {
  const parts = Object.entries(members).flatMap(([name, bytes]) => {
    const header = Buffer.alloc(30);
    header.writeUInt32LE(0x04034b50);
    header.writeUInt16LE(method, 8);
    header.writeInt32LE(-1, 18);
    header.writeInt32LE(-1, 22);
    header.writeUInt16LE(name.length, 26);
    header.writeUInt16LE(20, 28);
    const extra = Buffer.alloc(20);
    extra.writeUInt16LE(1);
    extra.writeUInt16LE(16, 2);
    extra.writeBigUInt64LE(BigInt(bytes.length), 4);
    extra.writeBigUInt64LE(BigInt(bytes.length), 12);
    return [header, Buffer.from(name), extra, bytes];
  });
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50);
  end.writeUInt16LE(Object.keys(members).length, 10);
  end.writeUInt32LE(Buffer.concat(parts).length, 16);
  return Buffer.concat([...parts, Buffer.from('PK\x01\x02'), end]);
}

const npyOf = (header: NpyHeader, bytes: Uint8Array): Buffer => Buffer.concat([npyHeader(header), bytes]);
const matrix = npyOf({ shape: `${ROWS}, ${DIMENSION}` }, bytesOf(values));

test('an ID map, .npz and safetensors are used in place; ids that are row numbers count as none', async (t) => {
  const folder = await tempFolder(t);
  const flat = fileBytes('faiss', values, DIMENSION);
  const numbers = Array.from({ length: ROWS }, (_, row) => row);
  const ids = numbers.map((row) => 1000 - row);
  for (const [name, bytes, expectedIds] of [
    ['a.index', idMap(flat, numbers), undefined],
    ['b.index', idMap(flat, ids, 'IxM2'), ids.map(String)],
    ['c.index', idMap(fileBytes('faiss-fp16', values, DIMENSION), numbers), undefined],
    ['d.npz', npz({ 'arr_0.npy': matrix }), undefined],
    [
      'e.npz',
      npz({ 'ids.npy': npyOf({ shape: '37,', descr: "'<U3'" }, Buffer.alloc(9)), 'emb.npy': matrix }),
      undefined,
    ],
    [
      'f.safetensors',
      safetensors({ emb: tensor('F32'), norm: { dtype: 'F32', shape: [37], data_offsets: [0, 148] } }),
      undefined,
    ],
  ] as const) {
    const [path] = writeVectors(folder, name, bytes);
    const set = await openVectorFiles([path!], { dimension: 99 });
    assert.deepEqual([set.rows, set.dimension, set.ids, set.isCopied], [ROWS, DIMENSION, expectedIds, false], name);
    assert.deepEqual(rowsIn(set), values, name);
  }
  for (const [name, bytes, message] of [
    ['compressed.npz', npz({ 'emb.npy': matrix }, 8), /its arrays are compressed.*\['emb'\]/],
    ['two.npz', npz({ 'a.npy': matrix, 'b.npy': matrix }), /2 matrices.*in its arrays a, b; expected one.*\['NAME'\]/],
  ] as const) {
    const [path] = writeVectors(folder, name, bytes);
    await assert.rejects(openVectorFiles([path!], { dimension: 6 }), trawlError('VECTORS_UNSUPPORTED', message), name);
  }
});

test('an archive or safetensors file that is cut anywhere, or describes other sizes than it has, is refused', async (t) => {
  const folder = await tempFolder(t);
  const archive = npz({ 'a.npy': npyOf({ shape: '2, 2' }, new Uint8Array(16)), 'b.npy': Buffer.alloc(40) });
  const wrong: [string, Buffer][] = [
    ['npz', npz({ 'a.npy': npyOf({ shape: '2, 2' }, new Uint8Array(20)) })],
    ['npz', Buffer.concat([archive, archive])],
    ['safetensors', safetensors({ emb: { dtype: 'F32', shape: [ROWS, DIMENSION], data_offsets: [0, 4] } })],
    ['safetensors', safetensors({ emb: { dtype: 'F32', shape: [ROWS, DIMENSION] } })],
  ];
  const tooLong = Buffer.from(archive);
  tooLong.writeBigUInt64LE(2n ** 63n, tooLong.indexOf('a.npy') + 'a.npy'.length + 12);
  wrong.push(['npz', tooLong]);
  for (const [format, whole] of [
    ['npz', archive],
    ['safetensors', safetensors({ emb: tensor('F32') })],
  ] as const) {
    for (let bytes = 0; bytes < whole.length; bytes += bytes < 400 ? 1 : 97)
      wrong.push([format, whole.subarray(0, bytes)]);
  }
  for (const [format, bytes] of wrong) {
    const [path] = writeVectors(folder, 'x', bytes);
    await assert.rejects(openVectorFiles([path!], { format, dimension: 6 }), (error) => {
      assert.ok(
        error instanceof TrawlError && /^VECTORS_/.test(error.code),
        `${format} ${bytes.length}: ${String(error)}`,
      );
      return true;
    });
  }
});

function rowsIn({ segments, dimension, rows }: VectorFileSet): Float32Array {
  const reader = new SegmentReader(segments, dimension);
  try {
    const read = new Float32Array(rows * dimension);
    reader.read(0, rows, read);
    return read;
  } finally {
    reader.close();
  }
}

test('rows that cannot be used in place are copied to the working file, of several files and with their ids', async (t) => {
  const folder = await tempFolder(t);
  const at = (row: number): number[] => [...values.subarray(row * DIMENSION, (row + 1) * DIMENSION)];
  const lines = (from: number, to: number, line: (row: number) => object): string =>
    Array.from({ length: to - from }, (_, i) => `${JSON.stringify(line(from + i))}\n`).join('');
  const write = (name: string, content: string | Uint8Array): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const fvecs = (value: 'F' | 'B'): Buffer =>
    Buffer.concat(
      Array.from({ length: ROWS }, (_, row) => {
        const head = Buffer.alloc(4);
        head.writeInt32LE(DIMENSION);
        return Buffer.concat([
          head,
          value === 'F' ? bytesOf(Float32Array.from(at(row))) : Buffer.alloc(DIMENSION, row),
        ]);
      }),
    );
  const pyserini = (row: number): object => ({ id: `d${row}`, contents: 'a text', vector: at(row) });
  const parquetRows = (): Uint8Array => {
    const columnData = [
      { name: 'docid', data: Array.from({ length: ROWS }, (_, row) => `d${row}`) },
      { name: 'embedding', data: Array.from({ length: ROWS }, (_, row) => at(row)), type: 'JSON' as const },
    ];
    return new Uint8Array(parquetWriteBuffer({ columnData }));
  };
  const bytes = Float32Array.from({ length: values.length }, (_, i) => Math.floor(i / DIMENSION));
  for (const [files, expected, hasIds] of [
    [[write('a.jsonl', lines(0, ROWS, pyserini))], values, true],
    [[write('b.jsonl', lines(0, 5, pyserini)), write('c.jsonl.gz', gzipSync(lines(5, ROWS, pyserini)))], values, true],
    [
      [
        write(
          'no-name',
          lines(0, ROWS, (row) => ({ tags: [1], embedding: at(row) })),
        ),
      ],
      values,
      false,
    ],
    [[write('table', parquetRows())], values, true],
    [[write('d.fvecs', fvecs('F'))], values, false],
    [[write('e.bvecs', fvecs('B'))], bytes, false],
    [[write('f.npy', matrix), write('g.fvecs', fvecs('F'))], Float32Array.from([...values, ...values]), false],
  ] as const) {
    const workingFile = join(folder, 'working', 'file');
    const set = await openVectorFiles(files, { dimension: DIMENSION, workingFile });
    assert.deepEqual([set.isCopied, set.dtype], [true, 'float32']);
    assert.deepEqual(rowsIn(set), expected, files[0]);
    assert.deepEqual(set.ids, hasIds ? Array.from({ length: ROWS }, (_, row) => `d${row}`) : undefined);
    assert.deepEqual(
      set.files.map(({ path }) => path),
      files,
      'the record has the files themselves',
    );
    rmSync(workingFile);
  }
  for (const [name, content, message] of [
    ['uneven.jsonl', '{"vector":[1,2]}\n{"vector":[1]}\n', /row 1 has 1 values, the rows before it have 2/],
    ['ids.jsonl', '{"id":1,"vector":[1]}\n{"vector":[1]}\n', /row 1: its id is missing; expected a text or an integer/],
    [
      'words.jsonl',
      '{"id":1,"vector":["a"]}\n',
      /its rows have no vector: the first one has id, vector; expected a list/,
    ],
    ['null.jsonl', '{"vector":[1,2]}\n{"vector":[1,null]}\n', /row 1: vector is not a list of numbers/],
    ['broken.jsonl', '{"vector":[1,2]}\n{"vector":[1,\n', /row 1: not valid JSON/],
    ['lists.jsonl', '{"a":[1],"b":[2]}\n', /has the lists a, b; expected a list of numbers named vector/],
    ['empty.jsonl', '\n', /it has no rows/],
    ['cut.fvecs', fvecs('F').subarray(0, 50), /its 50 bytes are not a multiple of 28/],
    ['wrong.fvecs', Buffer.concat([fvecs('F'), Buffer.alloc(28)]), /vector 37 has 0 dimensions, the first one 6/],
  ] as const) {
    const options = { dimension: DIMENSION, workingFile: join(folder, `work of ${name}`) };
    await assert.rejects(
      openVectorFiles([write(name, content)], options),
      trawlError('VECTORS_INVALID', message),
      name,
    );
  }
});

test('files that cannot be used are refused with the reason and what to do', async (t) => {
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
  const text = (words: string): Buffer => Buffer.from(words.padEnd(96));
  const cases: readonly [string, Uint8Array, Parameters<typeof trawlError>[0], RegExp][] = [
    ['fortran', npy({ fortranOrder: true }), 'VECTORS_UNSUPPORTED', /Fortran order.*np\.ascontiguousarray/],
    ['big-endian', npy({ descr: "'>f4'" }), 'VECTORS_UNSUPPORTED', /big-endian values \(>f4\).*dtype='<f4'/],
    ['float64', npy({ descr: "'<f8'" }), 'VECTORS_UNSUPPORTED', /float64 \(<f8\)/],
    ['object', npy({ descr: "'|O'" }), 'VECTORS_UNSUPPORTED', /Python objects/],
    ['records', npy({ descr: "[('a', '<f4')]" }), 'VECTORS_UNSUPPORTED', /records/],
    ['one dimension', npy({ shape: '222,' }), 'VECTORS_UNSUPPORTED', /shape is \(222,\); expected \(rows, dimension\)/],
    ['overflowing shape', npy({ shape: '4611686018427387905, 4' }), 'VECTORS_INVALID', /shape .* is invalid/],
    ['large shape', npy({ shape: '900000000000000, 900000000000000' }), 'VECTORS_INVALID', /no file is that large/],
    [
      'negative shape',
      npy({ shape: '-1, 6' }),
      'VECTORS_INVALID',
      /the shape \(-1, 6\) in the \.npy header is invalid/,
    ],
    ['no columns', npy({ shape: '37, 0' }), 'VECTORS_INVALID', /the shape is \(37, 0\)/],
    ['no rows', npy({ shape: '0, 6' }, new Uint8Array()), 'VECTORS_INVALID', /has no rows/],
    [
      'short .npy',
      npy({}).subarray(0, 900),
      'VECTORS_INVALID',
      /37 rows of 6 float32, so it should have 1016 bytes, but there are only 900/,
    ],
    ['long .npy', Buffer.concat([npy({}), Buffer.alloc(1)]), 'VECTORS_INVALID', /1016 bytes, but it has 1017/],
    [
      '.npy of version 9',
      Buffer.concat([Buffer.from('\x93NUMPY\x09\x00', 'latin1'), npy({}).subarray(8)]),
      'VECTORS_INVALID',
      /version is 9\.0/,
    ],
    [
      '.npy of a header alone',
      npy({}).subarray(0, 11),
      'VECTORS_INVALID',
      /its \.npy header should have \d+ bytes, but the file has 11/,
    ],
    ['short faiss', faiss.subarray(0, 800), 'VECTORS_INVALID', /933 bytes, but there are only 800.*part_aa part_ab/],
    ['long faiss', Buffer.concat([faiss, Buffer.alloc(3)]), 'VECTORS_INVALID', /933 bytes, but it has 936/],
    ['faiss that wraps', wrapped, 'VECTORS_INVALID', /floats for 8589934596 rows/],
    ['hnsw', fourcc('IHNf'), 'VECTORS_UNSUPPORTED', /FAISS file with an HNSW index.*index\.reconstruct_n/],
    ['ivf', fourcc('IwFl'), 'VECTORS_UNSUPPORTED', /an IVF flat index \(IwFl\).*This needs ids that are row numbers/],
    ['pq', fourcc('IxPq'), 'VECTORS_UNSUPPORTED', /a PQ index.*It does not have the exact rows/],
    [
      'map of hnsw',
      idMap(fourcc('IHNf'), []),
      'VECTORS_UNSUPPORTED',
      /an ID map around an HNSW index.*faiss\.downcast_index\(index\.index\)/,
    ],
    ['map without ids', idMap(faiss, []), 'VECTORS_INVALID', /an ID map of 37 rows should have 1274 bytes and 37 ids/],
    [
      'map cut in its rows',
      idMap(faiss.subarray(0, 500), []),
      'VECTORS_INVALID',
      /37 rows of 6 float32 from byte 82 on/,
    ],
    ['another faiss', fourcc('IxZZ'), 'VECTORS_UNSUPPORTED', /begins with "IxZZ"/],
    ['pickle', Buffer.from([0x80, 4, 0x95, 0, 0, 0, 0, 0]), 'PICKLE_INVALID', /pickle is incomplete: /],
    [
      'memmap',
      Buffer.alloc(6 * 4 * 10 + 5),
      'VECTORS_INVALID',
      /245 bytes, is not a multiple of the row size, 24 bytes for 6 float32/,
    ],
    ['nothing', new Uint8Array(), 'VECTORS_INVALID', /is empty/],
    ['pointer', text('version https://git-lfs.github.com/spec/v1'), 'VECTORS_UNSUPPORTED', /Git LFS.*git lfs pull/],
    ['page', text('<!DOCTYPE html><html>'), 'VECTORS_UNSUPPORTED', /an HTML page/],
    ['zipped', Buffer.from([0x1f, 0x8b, 8, 0]), 'VECTORS_UNSUPPORTED', /compressed with gzip.*Unpack/],
    [
      'hdf5',
      Buffer.from('\x89HDF\r\n\x1a\n', 'latin1'),
      'VECTORS_UNSUPPORTED',
      /an HDF5 file.*--vectors-format memmap/,
    ],
    ['torch', text('PK\x03\x04'.padEnd(30, '\0').concat('archive/data.pkl')), 'VECTORS_UNSUPPORTED', /torch\.save/],
    ['numbers.txt', text('0.25 0.5 0.125 1.5\n'), 'VECTORS_UNSUPPORTED', /it is a text.*numpy\.loadtxt/],
    ['truth.ivecs', new Uint8Array(28), 'VECTORS_UNSUPPORTED', /row numbers.*Name the \.fvecs file/],
    [
      'short.safetensors',
      safetensors({ a: tensor('F32') }).subarray(0, 300),
      'VECTORS_INVALID',
      /37 rows of 6 float32/,
    ],
    [
      'many.safetensors',
      safetensors({ a: tensor('F32'), b: tensor('F32') }),
      'VECTORS_UNSUPPORTED',
      /a \(F32, \[37,6\]\), b/,
    ],
    [
      'half.safetensors',
      safetensors({ a: tensor('BF16') }),
      'VECTORS_UNSUPPORTED',
      /a \(BF16, \[37,6\]\); expected one matrix/,
    ],
  ];
  for (const [name, bytes, code, message] of cases) {
    const [path] = writeVectors(folder, name, bytes);
    await assert.rejects(openVectorFiles([path!], { dimension: DIMENSION }), trawlError(code, message), name);
  }
  const [whole] = writeVectors(folder, 'whole.npy', npy({}));
  const [other] = writeVectors(folder, 'other.npy', npy({ shape: `${(ROWS * DIMENSION) / 3}, 3` }));
  for (const [paths, code, message] of [
    [[join(folder, 'absent')], 'VECTORS_NOT_FOUND', /absent does not exist/],
    [[join(folder, 'absent*')], 'VECTORS_NOT_FOUND', /no file matches/],
    [[whole!, whole!], 'VECTORS_NOT_FOUND', /is named twice/],
    [['/dev/null'], 'VECTORS_NOT_FOUND', /not a regular file/],
    [[whole!, other!], 'VECTORS_INVALID', /other\.npy: it does not match the files before it: dimension 6, then 3/],
  ] as const) {
    await assert.rejects(openVectorFiles(paths, { dimension: DIMENSION }), trawlError(code, message));
  }
});

test('pickles are read in place, with their ids, as readPickledArrays finds them', async () => {
  const fixture = (name: string): string =>
    join(packageRoot, 'test', 'indexer', 'vector-files', 'fixtures', `${name}.pickle`);
  for (const name of ['array-4', 'list-4', 'tevatron-4', 'integer-ids']) {
    const { arrays, ids } = readPickledArrays(fixture(name));
    const set = await openVectorFiles([fixture(name)], { dimension: 99 });
    assert.deepEqual([set.formats, set.ids], [['pickle'], ids]);
    assert.deepEqual(
      set.segments.map(({ offset, bytes }) => [offset, bytes]),
      arrays.filter(({ bytes }) => bytes > 0).map(({ offset, bytes }) => [offset, bytes]),
    );
  }
  const twice = await openVectorFiles([fixture('array-4'), fixture('array-5')], { dimension: 99 });
  assert.equal(twice.rows, 2 * (await openVectorFiles([fixture('array-4')], { dimension: 99 })).rows);
  await assert.rejects(openVectorFiles([fixture('harmful')], { dimension: 99 }), trawlError('PICKLE_UNSAFE'));
});

test('a damaged file is refused with a VECTORS or PICKLE error, or all its rows lie within the file', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'damaged');
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...FILE_TYPES),
      fc.array(fc.record({ at: fc.nat(140), byte: fc.nat(255) }), { maxLength: 4 }),
      fc.option(fc.nat(1100), { freq: 2 }),
      async (fileType, changes, length) => {
        const bytes = Buffer.from(fileBytes(fileType, values, DIMENSION));
        for (const { at, byte } of changes) bytes[at] = byte;
        const written = length === null ? bytes : bytes.subarray(0, length);
        writeFileSync(path, written);
        try {
          const set = await openVectorFiles([path], optionsOf(fileType));
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
    { seed: 6, numRuns: COUNT },
  );
  assert.ok(refused > COUNT / 3, `${refused} of ${COUNT} were refused`);
});

test('files published by FlashRAG (FAISS) and tevatron (.npy) are read', {
  skip: withoutSharedData('flashrag_sample'),
}, async () => {
  const faiss = await openVectorFiles([sharedData('flashrag_sample/e5_flat_sample.index')], { dimension: 768 });
  assert.deepEqual([faiss.rows, faiss.dimension, faiss.metric, faiss.formats], [1000, 768, 'inner-product', ['faiss']]);
  await assert.rejects(
    openVectorFiles([sharedData('flashrag_sample/wiki_sample.index')], { dimension: 768 }),
    trawlError('VECTORS_UNSUPPORTED', /IVF-PQ/),
  );
  const npy = await openVectorFiles([sharedData('scifact_tevatron_emb/corpus_768_f32.npy')], { dimension: 768 });
  const ids = readFileSync(sharedData('scifact_tevatron_emb/corpus_ids.txt'), 'utf8').trim().split('\n');
  assert.deepEqual([npy.rows, npy.dimension], [ids.length, 768]);
});

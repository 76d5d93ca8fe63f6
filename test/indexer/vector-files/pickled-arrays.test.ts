import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { type PickledArrays, readPickledArrays } from '../../../indexer/vector-files/pickled-arrays.ts';
import { TrawlError } from '../../../src/base/errors.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { SegmentReader } from '../../../src/engine/vectors/vector-segments.ts';
import { runs } from '../../helpers/runs.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

/** Written by make_pickles.py in the same folder. */
const FIXTURES = join(packageRoot, 'test', 'indexer', 'vector-files', 'fixtures');
const ROWS = Float32Array.from({ length: 15 }, (_, i) => (((i * 7) % 31) - 15) / 8);
const IDS = ['d0', 'd-é', '3', '', 'x'.repeat(300)];

function fixture(name: string): string {
  return join(FIXTURES, `${name}.pickle`);
}

/** The values at the places that `readPickledArrays` found. */
function valuesOf(path: string, { arrays }: PickledArrays): Float32Array {
  const { dimension, dtype } = arrays[0]!;
  const segments = arrays.map(({ offset, bytes }) => ({ path, offset, bytes, dtype }));
  const reader = new SegmentReader(segments, dimension);
  try {
    const values = new Float32Array(reader.rows * dimension);
    reader.read(0, reader.rows, values);
    return values;
  } finally {
    reader.close();
  }
}

for (const protocol of [3, 4, 5]) {
  test(`an array pickled with protocol ${protocol} is found in place`, () => {
    for (const name of [`array-${protocol}`, `read-only-${protocol}`]) {
      const found = readPickledArrays(fixture(name));
      assert.deepEqual([found.arrays.length, found.ids], [1, undefined]);
      assert.deepEqual(valuesOf(fixture(name), found), ROWS);
    }
  });

  test(`arrays and rows in a list pickled with protocol ${protocol} are found in order, empty ones too`, () => {
    const list = readPickledArrays(fixture(`list-${protocol}`));
    assert.deepEqual(
      list.arrays.map(({ rows, dimension, dtype }) => [rows, dimension, dtype]),
      [
        [2, 3, 'float32'],
        [0, 3, 'float32'],
        [3, 3, 'float32'],
      ],
    );
    assert.deepEqual(valuesOf(fixture(`list-${protocol}`), list), ROWS);
    const rows = readPickledArrays(fixture(`rows-${protocol}`));
    assert.equal(rows.arrays.length, 5);
    assert.deepEqual(valuesOf(fixture(`rows-${protocol}`), rows), ROWS);
  });

  test(`tevatron's (array, ids) pickled with protocol ${protocol} is read with its ids`, () => {
    const found = readPickledArrays(fixture(`tevatron-${protocol}`));
    assert.deepEqual(found.ids, IDS);
    assert.equal(found.arrays[0]!.dtype, 'float16');
    assert.deepEqual(valuesOf(fixture(`tevatron-${protocol}`), found), ROWS);
  });
}

test('rows with their ids are read as DPR pickles them, and dictionaries of rows or of a matrix', () => {
  for (const name of ['dpr-3', 'dpr-4', 'dpr-5', 'dictionary-of-rows', 'dictionary-with-ids', 'dictionary']) {
    const found = readPickledArrays(fixture(name));
    assert.deepEqual(found.ids, name === 'dictionary' ? undefined : IDS, name);
    assert.deepEqual(valuesOf(fixture(name), found), ROWS, name);
  }
});

test('integer ids are read as decimal strings, and the module names of numpy 1 are known', () => {
  assert.deepEqual(readPickledArrays(fixture('integer-ids')).ids, ['0', '1', '300', '-70000', '1152921504606846976']);
  assert.deepEqual(valuesOf(fixture('numpy-1'), readPickledArrays(fixture('numpy-1'))), ROWS);
});

test('the first object of an appended file is read, as in Python', () => {
  const bytes = readFileSync(fixture('appended'));
  assert.deepEqual(
    bytes.subarray(bytes.length / 2, bytes.length / 2 + 2),
    bytes.subarray(0, 2),
    'a second object begins',
  );
  const found = readPickledArrays(fixture('appended'));
  assert.deepEqual(valuesOf(fixture('appended'), found), ROWS);
});

test('a matrix of one column is read in row-major and in column-major order', () => {
  const found = readPickledArrays(fixture('one-column'));
  assert.deepEqual([found.arrays[0]!.rows, found.arrays[0]!.dimension], [5, 1]);
});

test('pickles that an index cannot use are refused with the reason', () => {
  const refusals: Readonly<Record<string, RegExp>> = {
    'array-2': /encoded as text \(pickle protocol 2\).*numpy\.save/,
    'tevatron-2': /encoded as text \(pickle protocol 2\)/,
    float64: /its values are float64; expected float32 or float16\..*<f4/,
    'big-endian': /not little-endian \(byte order >\)/,
    'column-major': /column-major/,
    'column-major-5': /column-major/,
    cube: /an array with 3 dimensions/,
    numbers: /a list of 5 with a list of 3 in it/,
    'other-dictionary': /it contains a dictionary of 2 with other values; expected an array.*\{id: vector\}/,
    'array-of-ids': /a tuple of 2 arrays, of which the second has ids.*list\(ids\)/,
    'few-ids': /4 ids for 5 rows/,
  };
  for (const [name, reason] of Object.entries(refusals)) {
    assert.throws(() => readPickledArrays(fixture(name)), trawlError('PICKLE_INVALID', reason), name);
  }
  assert.throws(
    () => readPickledArrays(fixture('uneven')),
    trawlError('DIMENSION_MISMATCH', /array 1 has rows of 2 float32/),
  );
  assert.throws(() => readPickledArrays(fixture('objects')), TrawlError);
  assert.throws(() => readPickledArrays(join(FIXTURES, 'none.pickle')), trawlError('PICKLE_INVALID', /Cannot read/));
  assert.throws(
    () => readPickledArrays(FIXTURES),
    trawlError('PICKLE_INVALID', /not a regular file\. Save the pickle/),
  );
  assert.throws(() => readPickledArrays(FIXTURES), trawlError('PICKLE_INVALID', /not a regular file/));
});

test('a pickle that names another function or class is refused, naming it, and nothing is run', () => {
  assert.throws(
    () => readPickledArrays(fixture('harmful')),
    trawlError('PICKLE_UNSAFE', /"posix\.system".*ran nothing/),
  );
  assert.throws(() => readPickledArrays(fixture('harmful-2')), trawlError('PICKLE_UNSAFE', /"posix\.system"/));
  assert.throws(
    () => readPickledArrays(fixture('scalars')),
    trawlError('PICKLE_UNSAFE', /"numpy\._core\.multiarray\.scalar"/),
  );
  assert.equal(existsSync('harmful'), false);
});

/** Writes a pickle of protocol 4 with these bytes between its header and its end. */
async function written(t: TestContext, ...parts: readonly (string | readonly number[])[]): Promise<string> {
  const path = join(await tempFolder(t), 'made.pickle');
  const body = parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part)));
  writeFileSync(path, Buffer.concat([Buffer.from([0x80, 4]), ...body, Buffer.from('.')]));
  return path;
}

test('opcodes that create objects are refused as unsafe', async (t) => {
  for (const [code, name] of [
    ['iposix\nsystem\n', 'INST'],
    ['(o', 'OBJ'],
    ['Pid\n', 'PERSID'],
    ['NQ', 'BINPERSID'],
    [')\x81', 'NEWOBJ'],
    ['\x92', 'NEWOBJ_EX'],
    ['\x82\x01', 'EXT1'],
    ['\x83\x01\x00', 'EXT2'],
    ['\x84\x01\x00\x00\x00', 'EXT4'],
  ] as const) {
    const path = await written(t, code);
    assert.throws(() => readPickledArrays(path), trawlError('PICKLE_UNSAFE', new RegExp(name)), name);
  }
});

test('a name inside an allowed class, and a call of a value that is no function, are refused', async (t) => {
  const dotted = await written(t, '\x8c\x05numpy\x8c\x0fndarray.tofile.x\x93');
  assert.throws(() => readPickledArrays(dotted), TrawlError);
  const inside = await written(t, '\x8c\x05numpy\x8c\x0endarray.tofile\x93');
  assert.throws(() => readPickledArrays(inside), trawlError('PICKLE_UNSAFE', /"numpy\.ndarray\.tofile"/));
  const called = await written(t, 'K\x01)R');
  assert.throws(() => readPickledArrays(called), trawlError('PICKLE_UNSAFE', /it calls a number/));
  const constructed = await written(t, 'cnumpy\nndarray\n)R');
  assert.throws(() => readPickledArrays(constructed), trawlError('PICKLE_UNSAFE', /it calls numpy\.ndarray/));
  const stateOfList = await written(t, '])b');
  assert.throws(() => readPickledArrays(stateOfList), trawlError('PICKLE_UNSAFE', /sets the state of a list/));
});

test('lengths beyond the file, missing marks and memo entries, and lists that contain themselves are refused', async (t) => {
  for (const body of [
    '\x8e\xff\xff\xff\xff\xff\xff\xff\x7f',
    '\x8e\xff\xff\xff\xff\xff\xff\xff\xff',
    '\x96\x00\x00\x00\x00\x00\x00\x00\x01',
    '\x8d\x00\x00\x00\x00\x00\x01\x00\x00',
    '\x8a\xff',
    'e',
    't',
    'h\x07',
    'r\xff\xff\xff\x7f',
    ']\x94h\x00a',
    '\x97',
    'c'.repeat(5000),
    '\x00',
    '',
  ]) {
    const path = await written(t, body);
    assert.throws(() => readPickledArrays(path), trawlError('PICKLE_INVALID'), JSON.stringify(body.slice(0, 9)));
  }
});

test('a shape whose product wraps at 64 bits is refused', async (t) => {
  const bytes = readFileSync(fixture('array-5'));
  // (5, 3) are two one-byte integers in a tuple; in their place 2^32 and 2^32, whose product by 4 is 0 in 64 bits.
  const at = bytes.indexOf(Buffer.from('K\x05K\x03\x86', 'latin1'));
  assert.ok(at > 0);
  const wide = Buffer.from('\x8a\x05\x00\x00\x00\x00\x01\x8a\x05\x00\x00\x00\x00\x01\x86', 'latin1');
  const path = join(await tempFolder(t), 'wide.pickle');
  writeFileSync(path, Buffer.concat([bytes.subarray(0, at), wide, bytes.subarray(at + 5)]));
  assert.throws(
    () => readPickledArrays(path),
    trawlError('PICKLE_INVALID', /60 bytes for 4294967296 rows of 4294967296 float32/),
  );
});

test('nine million lists on the stack are refused before memory runs out', async (t) => {
  const path = await written(t, ']'.repeat(9_000_000));
  assert.throws(() => readPickledArrays(path), trawlError('PICKLE_INVALID', /more than \d+ lists, tuples and arrays/));
});

test('a pickle truncated at any byte is refused', async (t) => {
  const path = join(await tempFolder(t), 'cut.pickle');
  for (const name of ['array-3', 'array-5', 'tevatron-4']) {
    const bytes = readFileSync(fixture(name));
    for (let length = 0; length < bytes.length; length++) {
      writeFileSync(path, bytes.subarray(0, length));
      assert.throws(() => readPickledArrays(path), trawlError('PICKLE_INVALID'), `${name} truncated to ${length}`);
    }
  }
});

test('a mutated pickle is refused with a TrawlError, or its arrays lie within the file', async (t) => {
  const originals = readdirSync(FIXTURES)
    .filter((name) => name.endsWith('.pickle'))
    .map((name) => readFileSync(join(FIXTURES, name)));
  const path = join(await tempFolder(t), 'mutated.pickle');
  let accepted = 0;
  const mutation = fc.record({
    at: fc.nat(2 ** 30),
    insert: fc.uint8Array({ maxLength: 6 }),
    // Mostly as many bytes as are inserted, so that lengths before them stay valid.
    remove: fc.option(fc.nat(6), { freq: 3 }),
  });
  fc.assert(
    fc.property(
      fc.constantFrom(...originals),
      fc.array(mutation, { minLength: 1, maxLength: 3 }),
      (original, changes) => {
        let bytes = original;
        for (const { at, remove, insert } of changes) {
          const offset = at % bytes.length;
          bytes = Buffer.concat([
            bytes.subarray(0, offset),
            insert,
            bytes.subarray(offset + (remove ?? insert.length)),
          ]);
        }
        writeFileSync(path, bytes);
        let found: PickledArrays;
        try {
          found = readPickledArrays(path);
        } catch (error) {
          assert.ok(error instanceof TrawlError && error.code !== 'INTERNAL', String(error));
          return;
        }
        accepted++;
        for (const { rows, dimension, dtype, offset, bytes: length } of found.arrays) {
          assert.equal(length, rows * dimension * (dtype === 'float32' ? 4 : 2));
          assert.ok(offset >= 0 && offset + length <= bytes.length);
        }
      },
    ),
    { numRuns: runs(300, 1_500) },
  );
  t.diagnostic(`${accepted} of 1500 mutated pickles hold an array`);
  assert.ok(accepted > 0);
});

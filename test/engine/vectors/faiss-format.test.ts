import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { TrawlError } from '../../../src/base/errors.ts';
import {
  decodeFlatHeader,
  encodeFlatHeader,
  FAISS_HEADER_BYTES,
  faissMetric,
  flatFileBytes,
} from '../../../src/engine/vectors/faiss-format.ts';
import { sharedData, withoutSharedData } from '../../helpers/shared-data.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const HEADER = { dimension: 768, rows: 1000, metric: 'inner-product' } as const;

/** A valid header of 1,000 rows of 768 with some of its fields changed. */
function header(change: (view: DataView) => void = () => undefined): Uint8Array {
  const bytes = encodeFlatHeader(HEADER);
  change(new DataView(bytes.buffer));
  return bytes;
}

test('the header has the bytes that faiss writes', () => {
  const expected =
    '49784649' + // IxFI
    '03000000' + // dimension 3
    '0201000000000000' + // 258 rows
    '0000100000000000'.repeat(2) + // 2^20, twice
    '01' + // trained
    '00000000' + // inner product
    '0603000000000000'; // 774 floats
  const bytes = encodeFlatHeader({ dimension: 3, rows: 258, metric: 'inner-product' });
  assert.equal(Buffer.from(bytes).toString('hex'), expected);
  assert.equal(bytes.length, FAISS_HEADER_BYTES);
});

test('an L2 header differs only in fourcc and metric type', () => {
  const ip = encodeFlatHeader(HEADER);
  const l2 = encodeFlatHeader({ ...HEADER, metric: 'l2' });
  const changed = [...ip.keys()].filter((i) => ip[i] !== l2[i]);
  assert.deepEqual(changed, [3, 33]);
  assert.equal(Buffer.from(l2.subarray(0, 4)).toString('latin1'), 'IxF2');
  assert.equal(l2[33], 1);
});

test('cosine rows are stored in an inner-product file', () => {
  assert.deepEqual((['inner-product', 'cosine', 'l2'] as const).map(faissMetric), [
    'inner-product',
    'inner-product',
    'l2',
  ]);
});

test('every written header reads back unchanged', () => {
  const headers = fc.record({
    dimension: fc.integer({ min: 1, max: 2 ** 24 }),
    rows: fc.integer({ min: 0, max: 2 ** 39 }),
    metric: fc.constantFrom('inner-product' as const, 'l2' as const),
  });
  fc.assert(
    fc.property(headers, (written) => {
      assert.deepEqual(decodeFlatHeader(encodeFlatHeader(written), 'x'), { ...written });
    }),
  );
});

test('a header may be anywhere in a larger buffer', () => {
  const buffer = new Uint8Array(200).fill(0xff);
  buffer.set(header(), 77);
  assert.deepEqual(decodeFlatHeader(buffer.subarray(77), 'x'), HEADER);
});

test('a flat file has its header and the rows', () => {
  assert.equal(flatFileBytes(1000, 768), 45 + 1000 * 768 * 4);
});

test('a file of any length below the header is refused as truncated', () => {
  for (let length = 0; length < FAISS_HEADER_BYTES; length++) {
    assert.throws(
      () => decodeFlatHeader(header().subarray(0, length), 'v.faiss'),
      trawlError('INDEX_FILE_TRUNCATED', new RegExp(`^v\\.faiss: has ${length} bytes`)),
    );
  }
});

const CORRUPT: readonly [string, (view: DataView) => void, RegExp][] = [
  ['dimension 0', (view) => view.setInt32(4, 0, true), /dimension 0/],
  ['a negative dimension', (view) => view.setInt32(4, -768, true), /dimension -768/],
  ['another dimension', (view) => view.setInt32(4, 769, true), /768000 floats for 1000 rows of 769/],
  ['negative rows', (view) => view.setBigInt64(8, -1n, true), /-1 rows/],
  ['rows beyond 2^53', (view) => view.setBigInt64(8, 2n ** 53n, true), /9007199254740992 rows/],
  ['one row more', (view) => view.setBigInt64(8, 1001n, true), /768000 floats for 1001 rows/],
  ['a trained flag of 2', (view) => view.setUint8(32, 2), /trained flag 2/],
  ['the metric type of L2 in an inner-product file', (view) => view.setInt32(33, 1, true), /metric type 1 in an IxFI/],
  ['a metric type that flat files do not have', (view) => view.setInt32(33, 23, true), /metric type 23/],
  ['one float less', (view) => view.setBigUint64(37, 767_999n, true), /767999 floats/],
  [
    'as many floats as fit 64 bits',
    (view) => view.setBigUint64(37, 2n ** 64n - 1n, true),
    /18446744073709551615 floats/,
  ],
];
for (const [what, change, message] of CORRUPT) {
  test(`a header with ${what} is refused and the file named`, () => {
    assert.throws(
      () => decodeFlatHeader(header(change), 'v.faiss'),
      trawlError('INDEX_FILE_FOREIGN', new RegExp(`^v\\.faiss: .*${message.source}`)),
    );
  });
}

test('rows × dimension that wraps to a small number in 64 bits is refused', () => {
  const bytes = header((view) => {
    view.setInt32(4, 2 ** 24, true);
    view.setBigInt64(8, 2n ** 40n, true);
    view.setBigUint64(37, 0n, true); // 2^64 modulo 2^64
  });
  assert.throws(
    () => decodeFlatHeader(bytes, 'v'),
    trawlError('INDEX_FILE_FOREIGN', /0 floats for 1099511627776 rows/),
  );
});

for (const [fourcc, type] of [
  ['IHNf', 'HNSW'],
  ['IwFl', 'IVF flat'],
  ['IwPQ', 'IVF-PQ'],
  ['IxPq', 'PQ'],
  ['IxM2', 'ID-map'],
  ['IxFl', 'flat index of another metric'],
] as const) {
  test(`a FAISS index ${fourcc} is refused with the name of its type`, () => {
    const bytes = header();
    bytes.set(Buffer.from(fourcc), 0);
    assert.throws(
      () => decodeFlatHeader(bytes, 'v.faiss'),
      trawlError('INDEX_FILE_FOREIGN', new RegExp(`${type} .*\\(${fourcc}\\).*IxFI or IxF2`)),
    );
  });
}

test('the refusal of another file quotes its first bytes', () => {
  const bytes = new Uint8Array(64);
  bytes.set(Buffer.from('SQLite format 3\0'));
  assert.throws(() => decodeFlatHeader(bytes, 'v'), trawlError('INDEX_FILE_FOREIGN', /begins with "SQLi"/));
});

test('a real IVF-PQ index is refused with the name of its type', {
  skip: withoutSharedData('flashrag_sample/wiki_sample.index'),
}, () => {
  const bytes = readFileSync(sharedData('flashrag_sample/wiki_sample.index'));
  assert.throws(() => decodeFlatHeader(bytes, 'wiki'), trawlError('INDEX_FILE_FOREIGN', /IVF-PQ/));
});

test('any bytes are read as a header or refused with a TrawlError', () => {
  const seen = { read: 0, refused: 0 };
  const valid = fc.record({
    dimension: fc.integer({ min: 1, max: 4096 }),
    rows: fc.integer({ min: 0, max: 2 ** 33 }),
    metric: fc.constantFrom('inner-product' as const, 'l2' as const),
  });
  const mutated = fc
    .tuple(valid, fc.array(fc.tuple(fc.nat(FAISS_HEADER_BYTES - 1), fc.nat(255)), { maxLength: 3 }))
    .map(([good, changes]) => {
      const bytes = encodeFlatHeader(good);
      for (const [at, byte] of changes) bytes[at] = byte;
      return bytes;
    });
  fc.assert(
    fc.property(fc.oneof(mutated, fc.uint8Array({ maxLength: 64 })), (bytes) => {
      try {
        const read = decodeFlatHeader(bytes, 'x');
        seen.read++;
        const again = encodeFlatHeader(read);
        // Only the unused fields and the trained flag may differ.
        for (const [i, byte] of again.entries()) if (i < 16 || i > 32) assert.equal(bytes[i], byte, `byte ${i}`);
      } catch (error) {
        if (!(error instanceof TrawlError)) throw error;
        seen.refused++;
      }
    }),
    { numRuns: 2000 },
  );
  assert.ok(seen.read > 100 && seen.refused > 100, JSON.stringify(seen));
});

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { readParquetRows } from '../../../corpus/read-parquet.ts';
import {
  checkOutputFormat,
  makeEncoder,
  OUTPUT_FORMATS,
  outputFormatOf,
} from '../../../evaluation/bulk-search/outputs/output-format.ts';
import type { FoundQuery, OutputShape } from '../../../evaluation/bulk-search/outputs/result-encoder.ts';
import { TrawlError } from '../../../src/base/errors.ts';
import { runs } from '../../helpers/runs.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const SHAPE: OutputShape = { queries: 0, k: 3, hasRounds: true, isGroup: false, hasScoreFile: false, tag: 'mine' };

const FOUND: readonly FoundQuery[] = [
  {
    id: 'a',
    round: 1,
    hits: [
      { row: 5_000_000_000, score: Math.fround(0.1), document: '' },
      { row: 0, score: -2, document: '' },
    ],
    ids: ['9007199254740993', 'x'],
  },
  { id: 'a', round: 2, hits: [], ids: [], error: new TrawlError('ENCODING_FAILED', 'It failed.') },
  { id: '💧', round: undefined, hits: [{ row: 7, score: 1, document: '' }], ids: ['row:7'] },
];

function encoded(format: (typeof OUTPUT_FORMATS)[number], shape: Partial<OutputShape> = {}): Buffer[] {
  const encoder = makeEncoder(format, { ...SHAPE, queries: FOUND.length, ...shape }, undefined);
  const parts = [encoder.begin(), encoder.add(FOUND), encoder.end()];
  return [0, 1].map((file) => Buffer.concat(parts.map((part) => part[file] ?? new Uint8Array(0))));
}

test('the format of the output follows from the name', () => {
  const named = ['a.parquet', 'rows.NPY', 'x.trec', 'x.run', 'hits.jsonl', 'hits', 'hits.txt', 'folder/.npy'];
  assert.deepEqual(
    named.map((name) => outputFormatOf(name, undefined)),
    ['parquet', 'npy', 'trec', 'trec', 'jsonl', 'jsonl', 'jsonl', 'npy'],
  );
  assert.equal(outputFormatOf('a.npy', 'jsonl'), 'jsonl');
});

test('JSON lines have a line for each query, with its round or its error', () => {
  assert.equal(
    encoded('jsonl')[0]!.toString(),
    `{"id":"a","round_index":1,"hits":[{"row":5000000000,"id":"9007199254740993","score":${Math.fround(0.1)}},{"row":0,"id":"x","score":-2}]}
{"id":"a","round_index":2,"error":{"code":"ENCODING_FAILED","message":"It failed."}}
{"id":"💧","hits":[{"row":7,"id":"row:7","score":1}]}
`,
  );
});

test('a TREC run keeps the rounds of a question apart in its query ids', () => {
  assert.equal(
    encoded('trec')[0]!.toString(),
    `a#1 Q0 9007199254740993 1 ${Math.fround(0.1)} mine\na#1 Q0 x 2 -2 mine\n💧 Q0 row:7 1 1 mine\n`,
  );
});

test('a .npy file has a row of k numbers for each query, -1 where there are fewer hits', () => {
  const [rows, scores] = encoded('npy', { hasScoreFile: true }) as [Buffer, Buffer];
  const [rowHead, scoreHead] = [rows, scores].map((file) =>
    file.subarray(0, 10 + file.readUInt16LE(8)).toString('latin1'),
  );
  assert.match(rowHead!, /^\x93NUMPY\x01\x00..\{'descr': '<i8', 'fortran_order': False, 'shape': \(3, 3\), \} *\n$/s);
  assert.match(scoreHead!, /'descr': '<f4'.*\n$/s);
  assert.equal(rowHead!.length % 64, 0);
  const values = Array.from({ length: 9 }, (_, i) => rows.readBigInt64LE(rowHead!.length + 8 * i));
  assert.deepEqual(values, [5_000_000_000n, 0n, -1n, -1n, -1n, -1n, 7n, -1n, -1n]);
  assert.equal(rows.length, rowHead!.length + 72);
  const lowest = -3.4028234663852886e38;
  assert.deepEqual(
    Array.from({ length: 9 }, (_, i) => scores.readFloatLE(scoreHead!.length + 4 * i)),
    [Math.fround(0.1), -2, lowest, lowest, lowest, lowest, 1, lowest, lowest],
  );
});

test('without a score file no scores are gathered', (t) => {
  const fill = t.mock.method(Float32Array.prototype, 'fill');
  assert.equal(encoded('npy')[1]!.length, 0);
  assert.equal(fill.mock.callCount(), 0);
});

test('Parquet has a row for each hit, with ranks from 1, and none for a query without hits', async (t) => {
  const path = join(await tempFolder(t), 'hits.parquet');
  writeFileSync(path, encoded('parquet')[0]!);
  const rows: unknown[] = [];
  for await (const some of readParquetRows(path)) rows.push(...some.map(({ row }) => JSON.parse(row as string)));
  assert.deepEqual(rows, [
    { query_id: 'a', round_index: 1, rank: 1, row: 5_000_000_000, id: '9007199254740993', score: Math.fround(0.1) },
    { query_id: 'a', round_index: 1, rank: 2, row: 0, id: 'x', score: -2 },
    { query_id: '💧', round_index: null, rank: 1, row: 7, id: 'row:7', score: 1 },
  ]);
});

test('hits of a group have their index, and the row in it', async (t) => {
  const source = { index: 'news', row: 4, score: 1 };
  const found = [{ id: 'a', round: undefined, hits: [{ row: 104, score: 1, document: '', source }], ids: ['n4'] }];
  const shape = { ...SHAPE, hasRounds: false, isGroup: true };
  const lines = makeEncoder('jsonl', shape, undefined).add(found)[0]!;
  assert.equal(Buffer.from(lines).toString(), '{"id":"a","hits":[{"index":"news","row":4,"id":"n4","score":1}]}\n');
  const parquet = makeEncoder('parquet', shape, undefined);
  const path = join(await tempFolder(t), 'hits.parquet');
  writeFileSync(path, Buffer.concat([...parquet.begin(), ...parquet.add(found), ...parquet.end()]));
  for await (const rows of readParquetRows(path)) {
    assert.deepEqual(
      rows.map(({ row }) => JSON.parse(row as string)),
      [{ query_id: 'a', rank: 1, index: 'news', row: 4, id: 'n4', score: 1 }],
    );
  }
});

test('formats that cannot hold the results are refused', () => {
  const check = (format: (typeof OUTPUT_FORMATS)[number], isGroup: boolean, hasScoreFile: boolean) => (): void =>
    checkOutputFormat(format, { isGroup, hasScoreFile });
  assert.throws(check('npy', true, false), trawlError('USAGE', /several indexes.*--out-format jsonl or parquet/));
  assert.throws(check('trec', true, false), trawlError('USAGE', /TREC run/));
  assert.throws(check('parquet', false, true), trawlError('USAGE', /--scores-out is for row numbers as \.npy/));
  check('parquet', true, false)();
  check('npy', false, true)();
  assert.throws(() => encoded('npy', { k: 2 ** 24 + 1 }), trawlError('USAGE', /at most 16777216/));
});

test('an encoder that continues from the state of another one writes the same bytes', () => {
  // More than one row group of Parquet.
  const many = Array.from({ length: 60 }, (_, q): FoundQuery => {
    const hits = Array.from({ length: 5_000 }, (_, i) => ({
      row: (q * 7 + i) % 999,
      score: Math.fround(1 / (i + q + 1)),
      document: '',
    }));
    return { id: `q${q}`, round: q % 2 === 0 ? q : undefined, hits, ids: hits.map(({ row }) => `p${row}`) };
  });
  const batches = Array.from({ length: 12 }, (_, i) => many.slice(i * 5, i * 5 + 5));
  for (const format of OUTPUT_FORMATS) {
    const shape = { ...SHAPE, queries: many.length, k: 5_000 };
    const write = (stopAfter: number): Buffer => {
      let encoder = makeEncoder(format, shape, undefined);
      const bytes = [encoder.begin()[0]!];
      for (const [i, batch] of batches.entries()) {
        if (i === stopAfter) encoder = makeEncoder(format, shape, JSON.parse(JSON.stringify(encoder.state())));
        bytes.push(encoder.add(batch)[0] ?? new Uint8Array(0));
      }
      bytes.push(encoder.end()[0] ?? new Uint8Array(0));
      return Buffer.concat(bytes.map((part) => part ?? new Uint8Array(0)));
    };
    const whole = write(-1);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 11 }), (stopAfter) => whole.equals(write(stopAfter))),
      { numRuns: format === 'parquet' ? runs(4, 8) : runs(2, 3) },
    );
  }
});

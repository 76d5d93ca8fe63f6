import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';

import { parquetWriteBuffer } from 'hyparquet-writer';

import { openCorpus } from '../../corpus/open-corpus.ts';
import { readParquet } from '../../corpus/read-parquet.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { corpusDir, failsWith, readAll } from './corpus-dir.ts';

type WriteOptions = Parameters<typeof parquetWriteBuffer>[0];

function parquet(columnData: WriteOptions['columnData'], options: Omit<WriteOptions, 'columnData'> = {}): Uint8Array {
  return new Uint8Array(parquetWriteBuffer({ columnData, ...options }));
}

test('rows are read row group by row group, with row numbers from 1', async (t) => {
  const count = 1000;
  const file = corpusDir(t).write(
    'c.parquet',
    parquet(
      [
        { name: 'id', data: Array.from({ length: count }, (_, i) => `p${i}`), type: 'STRING' },
        { name: 'text', data: Array.from({ length: count }, (_, i) => `passage ${i}`), type: 'STRING' },
      ],
      { rowGroupSize: 300 },
    ),
  );
  const passages = await readAll(file);
  assert.equal(passages.length, count);
  for (const [i, passage] of passages.entries()) {
    assert.equal(passage.document, `{"id":"p${i}","text":"passage ${i}"}`);
    assert.deepEqual(passage.location, { file, line: i + 1 });
  }
});

test('int64 ids are exact integers', async (t) => {
  const ids = [1n, 9007199254740993n, -5n];
  const file = corpusDir(t).write(
    'c.parquet',
    parquet([
      { name: 'id', data: ids, type: 'INT64' },
      { name: 'contents', data: ['a', 'b', 'c'], type: 'STRING' },
    ]),
  );
  const passages = await readAll(file);
  assert.deepEqual(
    passages.map(({ document }) => document),
    ids.map((id, i) => `{"id":${id},"contents":"${'abc'[i]}"}`),
  );
});

test('decimals and dates keep all their digits', async (t) => {
  const decimal = (name: string, scale: number, type: object) =>
    ({ name, repetition_type: 'OPTIONAL', converted_type: 'DECIMAL', precision: 30, scale, ...type }) as const;
  const bytes = { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16 } as const;
  const instant = { type: 'INT64', repetition_type: 'OPTIONAL' } as const;
  const schema = [
    { name: 'root', num_children: 8 },
    decimal('id', 0, bytes),
    { name: 'text', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
    decimal('padded', 10, bytes),
    decimal('small', 1, { type: 'INT32' }),
    decimal('free', 2, { type: 'BYTE_ARRAY' }),
    { name: 'list', converted_type: 'LIST', repetition_type: 'OPTIONAL', num_children: 1 },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    decimal('element', 3, { type: 'INT64' }),
    { name: 'micros', converted_type: 'TIMESTAMP_MICROS', ...instant },
    { name: 'nanos', logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'NANOS' }, ...instant },
  ] as unknown as WriteOptions['schema'];
  const file = corpusDir(t).write(
    'c.parquet',
    parquet(
      [
        { name: 'id', data: [12345678901234567890n, 9007199254740993n, -7n] },
        { name: 'text', data: ['a', 'b', 'c'] },
        { name: 'padded', data: [120_000_000_000n, 1n, null] },
        { name: 'small', data: [3n, -5n, 0n] },
        { name: 'free', data: [6162n, -12345678901234567890n, null] },
        { name: 'list', data: [[9007199254740993001n, null], [], null] },
        { name: 'micros', data: [1_700_000_000_123_456n, -1n, 0n] },
        { name: 'nanos', data: [1_700_000_000_123_456_789n, null, 1_000_000n] },
      ],
      { schema },
    ),
  );
  const passages = await readAll(file);
  assert.deepEqual(
    passages.map(({ document }) => document),
    [
      '{"id":12345678901234567890,"text":"a","padded":12,"small":0.3,"free":61.62,"list":[9007199254740993.001,null],' +
        '"micros":"2023-11-14T22:13:20.123456Z","nanos":"2023-11-14T22:13:20.123456789Z"}',
      '{"id":9007199254740993,"text":"b","padded":0.0000000001,"small":-0.5,"free":-123456789012345678.9,"list":[],' +
        '"micros":"1969-12-31T23:59:59.999999Z","nanos":null}',
      '{"id":-7,"text":"c","padded":null,"small":0,"free":null,"list":null,' +
        '"micros":"1970-01-01T00:00:00.000Z","nanos":"1970-01-01T00:00:00.001Z"}',
    ],
  );
  assert.deepEqual(
    passages.map(({ id }) => id),
    [12345678901234567890n, 9007199254740993n, -7],
  );
});

test('ids that are float64 are integers as far as they are exact', async (t) => {
  const dir = corpusDir(t);
  const text = { name: 'text', data: ['a', 'b'], type: 'STRING' as const };
  const exact = dir.write('a.parquet', parquet([{ name: 'id', data: [17, 2 ** 53 - 1], type: 'DOUBLE' }, text]));
  assert.deepEqual(
    (await readAll(exact)).map(({ id }) => id),
    [17, 2 ** 53 - 1],
  );
  // pandas makes this of an int64 column with a null.
  const rounded = dir.write(
    'b.parquet',
    parquet([{ name: 'id', data: [Number(4873214862074861568n), 1], type: 'DOUBLE' }, text]),
  );
  const reason = '"id" must be a string or an integer of at most 1000 digits, found a float64 that may be rounded';
  await assert.rejects(readAll(rounded), failsWith('CORPUS_BAD_LINE', `${rounded}:1: `, reason));
  const other = dir.write(
    'c.parquet',
    parquet([{ name: 'n', data: [Number(4873214862074861568n), 1e21], type: 'DOUBLE' }, text]),
  );
  assert.deepEqual(
    (await readAll(other)).map(({ document }) => document),
    ['{"n":4873214862074861568.0,"text":"a"}', '{"n":1e+21,"text":"b"}'],
  );
});

test('null columns stay null, nested values become JSON, dates ISO strings, bytes text or base64', async (t) => {
  const file = corpusDir(t).write(
    'c.parquet',
    parquet([
      { name: 'id', data: [1] },
      { name: 'title', data: [null], type: 'STRING' },
      { name: 'text', data: ['x\ny'], type: 'STRING' },
      { name: 'meta', data: [{ tags: ['a', 1.5], big: 2 }], type: 'JSON' },
      { name: 'at', data: [new Date('2018-12-20T00:00:00.000Z')], type: 'TIMESTAMP' },
      { name: 'score', data: [Number.NaN], type: 'DOUBLE' },
      { name: 'flag', data: [true], type: 'BOOLEAN' },
      { name: 'raw', data: [Uint8Array.of(0xff, 0xfe)], type: 'BYTE_ARRAY' },
      { name: 'word', data: [Uint8Array.of(0x68, 0x69)], type: 'BYTE_ARRAY' },
    ]),
  );
  const [passage] = await readAll(file);
  assert.equal(
    passage?.document,
    '{"id":1,"title":null,"text":"x\\ny","meta":{"tags":["a",1.5],"big":2},"at":"2018-12-20T00:00:00.000Z",' +
      '"score":null,"flag":true,"raw":"//4=","word":"hi"}',
  );
  assert.deepEqual(JSON.parse(passage.document).text, 'x\ny');
});

test('a row that cannot be a passage is an error with its row, or skipped', async (t) => {
  const file = corpusDir(t).write(
    'c.parquet',
    parquet([
      { name: 'id', data: ['a', 'b'], type: 'STRING' },
      { name: 'text', data: ['t', null], type: 'STRING' },
    ]),
  );
  await assert.rejects(readAll(file), failsWith('CORPUS_BAD_LINE', `${file}:2: `, '"text" is null'));
  assert.equal((await readAll(file, { skipBadLines: true })).length, 1);
});

test('a text that is not UTF-8 is a bad row', async (t) => {
  const file = corpusDir(t).write(
    'c.parquet',
    parquet([{ name: 'text', data: [Uint8Array.of(0xff)], type: 'BYTE_ARRAY' }]),
  );
  await assert.rejects(readAll(file), failsWith('CORPUS_BAD_LINE', `${file}:1: `, 'not UTF-8'));
});

test('columns with other names are found, or named, and their bytes must be text', async (t) => {
  const dir = corpusDir(t);
  const file = dir.write(
    'c.parquet',
    parquet([
      { name: 'corpus-id', data: ['a'], type: 'STRING' },
      { name: 'Passage', data: ['t'], type: 'STRING' },
      { name: 'raw', data: [Uint8Array.of(0xff)], type: 'BYTE_ARRAY' },
    ]),
  );
  const [passage] = await readAll(file);
  assert.deepEqual([passage?.id, passage?.document], ['a', '{"id":"a","corpus-id":"a","text":"t","raw":"/w=="}']);
  const named = readAll(file, { columns: { text: 'raw' } });
  await assert.rejects(named, failsWith('CORPUS_BAD_LINE', `${file}:1: `, '"raw" must be a string, found bytes'));
});

test('bytes that are not UTF-8 in a column of any usual name are a bad row', async (t) => {
  const dir = corpusDir(t);
  const bytes = Uint8Array.of(0xff);
  for (const [id, text] of [
    ['docid', 'content'],
    ['content', 'docid'],
  ] as const) {
    const columns = { [id]: Buffer.from('ok'), [text]: bytes };
    const file = dir.write(
      'c.parquet',
      parquet(['docid', 'content'].map((name) => ({ name, data: [columns[name]!], type: 'BYTE_ARRAY' }))),
    );
    await assert.rejects(
      readAll(file),
      failsWith('CORPUS_BAD_LINE', `${file}:1: `, `"${text}" must be a string, found bytes`),
    );
  }
});

test('byte count and checksum cover the whole file', async (t) => {
  const bytes = parquet([{ name: 'text', data: ['a', 'b'], type: 'STRING' }]);
  const corpus = openCorpus([corpusDir(t).write('c.parquet', bytes)]);
  for await (const _ of corpus);
  const [report] = corpus.report.files;
  assert.equal(report?.sha256, createHash('sha256').update(bytes).digest('hex'));
  assert.equal(report?.readBytes, bytes.length);
});

test('a truncated file and one that is not Parquet are refused', async (t) => {
  const dir = corpusDir(t);
  const bytes = parquet([{ name: 'text', data: ['a', 'b'], type: 'STRING' }]);
  for (const content of ['', 'PAR1', '{"text":"t"}', bytes.subarray(0, bytes.length - 3)]) {
    const file = dir.write('c.parquet', content);
    await assert.rejects(readAll(file), failsWith('CORPUS_FORMAT_UNKNOWN', file, 'cannot be read as Parquet'));
  }
});

test('a damaged footer gives a TrawlError or other rows, never another error', async (t) => {
  const dir = corpusDir(t);
  const bytes = parquet(
    [
      { name: 'id', data: Array.from({ length: 50 }, (_, i) => i) },
      { name: 'text', data: Array.from({ length: 50 }, (_, i) => `passage ${i % 7}`), type: 'STRING' },
    ],
    { rowGroupSize: 20 },
  );
  const footerBytes = Buffer.from(bytes).readUInt32LE(bytes.length - 8);
  for (let position = bytes.length - 8 - footerBytes; position < bytes.length; position += 23) {
    const damaged = Uint8Array.from(bytes);
    damaged[position]! ^= 0x55;
    const file = dir.write('c.parquet', damaged);
    await readAll(file, { skipBadLines: true }).catch((error: unknown) => {
      assert.ok(error instanceof TrawlError, `byte ${position}: ${String(error)}`);
    });
  }
});

test('a damaged row group is an error with its first row, even if bad lines are skipped', async (t) => {
  const rows = Array.from({ length: 400 }, (_, i) => `passage number ${i} of some length`);
  const bytes = parquet([{ name: 'text', data: rows, type: 'STRING' }], { rowGroupSize: 200 });
  // The middle of the file is the data of one of its two row groups.
  bytes.fill(0xff, Math.floor(bytes.length / 2), Math.floor(bytes.length / 2) + 200);
  const file = corpusDir(t).write('c.parquet', bytes);
  await assert.rejects(
    readAll(file, { skipBadLines: true }),
    failsWith('CORPUS_BAD_LINE', /c\.parquet:(1|201): /, 'damaged'),
  );
});

test('a page that makes the library loop is an error with the first row of its row group', async (t) => {
  const count = 40;
  const bytes = parquet(
    [{ name: 'text', data: Array.from({ length: count }, (_, i) => (i % 2 === 0 ? 'a' : null)), type: 'STRING' }],
    { codec: 'UNCOMPRESSED' },
  );
  const dir = corpusDir(t);
  // The definition levels begin with the header of a bit-packed run; it becomes a run of 2^31 - 1 equal values.
  const run = Buffer.from(bytes).indexOf(Buffer.from([0x0b, 0x55, 0x55]));
  assert.ok(run > 0);
  bytes.set([0xfe, 0xff, 0xff, 0xff, 0x0f], run);
  const path = dir.write('c.parquet', bytes);
  const context = { path, maxLineBytes: 1e6, onRead: () => undefined };
  await assert.rejects(
    async () => {
      for await (const _ of readParquet(context, { timeLimitMs: 1500 }));
    },
    failsWith('CORPUS_BAD_LINE', /c\.parquet:1: .*(not finished within 2 s|MB of memory)/),
  );
});

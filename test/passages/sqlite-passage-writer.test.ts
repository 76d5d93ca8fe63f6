import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { PassageFile } from '../../src/passages/passage-file.ts';
import { type PassageToStore, SqlitePassageWriter } from '../../src/passages/sqlite-passage-writer.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { documentOf, numberedPassages, writePassages } from './passage-files.ts';

/** A writer whose rows are finished, with documents that say nothing. */
async function finishedRows(
  t: Parameters<typeof tempFolder>[0],
  ids: readonly PassageToStore['id'][],
): Promise<SqlitePassageWriter> {
  const writer = new SqlitePassageWriter(join(await tempFolder(t), 'p.sqlite'));
  t.after(() => writer.abandon());
  for (const [i, id] of ids.entries()) writer.append({ id, line: 10 * (i + 1), document: '{}' });
  writer.finishRows();
  return writer;
}

test('documents come back character for character', async (t) => {
  const documents = [
    '{"id":1,"contents":"plain"}',
    '{ "id" : 9007199254740993 , "contents" : "spaces and a big id", "weight": 1.50, "e": 1E+2 }',
    '{"id":123456789012345678901234567890,"contents":"beyond 2^63"}',
    String.raw`{"id":"nul","contents":"a\u0000b"}`,
    String.raw`{"id":"surrogates","contents":"\ud800 \udc00 \ud83d\udca7"}`,
    '{"id":"separators","contents":"\u2028\u2029\u0085\ufeff"}',
    '{"id":"💧","contents":"naïve Ω 漢字 e\u0301"}',
    '{"id":"__proto__","__proto__":{"x":1},"contents":""}',
    `{"id":"long","contents":"${'x'.repeat(1_000_000)}"}`,
    '{"id":null,"contents":"same","contents":"twice"}',
  ];
  const path = join(await tempFolder(t), 'p.sqlite');
  const sha256 = writePassages(
    path,
    documents.map((document, i) => ({ id: null, line: i + 1, document })),
  );
  const file = new PassageFile(path);
  t.after(() => file.close());
  assert.deepEqual(
    [...documents.keys()].map((row) => file.document(row)),
    documents,
  );
  assert.deepEqual([...file.documents()], documents);
  const expected = createHash('sha256');
  for (const document of documents) expected.update(`${document}\n`);
  assert.equal(sha256, expected.digest('hex'));
  assert.equal(file.sha256, sha256);
  assert.equal(file.rows, documents.length);
  assert.deepEqual(file.integrityProblems(), []);
});

test('20,001 passages over several transactions are all there in order', async (t) => {
  const path = join(await tempFolder(t), 'p.sqlite');
  const writer = new SqlitePassageWriter(path);
  t.after(() => writer.abandon());
  for (const passage of numberedPassages(0, 20_001)) writer.append(passage);
  assert.equal(writer.rows, 20_001);
  writer.finishRows();
  assert.deepEqual(
    writer.documents(9_998, 4),
    [9_998, 9_999, 10_000, 10_001].map(documentOf),
    'readable before the file is finished',
  );
  assert.deepEqual(writer.documents(20_000, 10), [documentOf(20_000)]);
  assert.deepEqual(writer.documents(20_001, 10), []);
  writer.finish();
  const file = new PassageFile(path);
  t.after(() => file.close());
  assert.equal(file.rows, 20_001);
  let row = 0;
  for (const document of file.documents()) assert.equal(document, documentOf(row++));
  assert.equal(file.document(20_001), undefined);
});

test('an empty file has no rows and is whole', async (t) => {
  const path = join(await tempFolder(t), 'p.sqlite');
  writePassages(path, []);
  const file = new PassageFile(path);
  t.after(() => file.close());
  assert.equal(file.rows, 0);
  assert.equal(file.document(0), undefined);
});

test('ids are kept for look-ups with their type, integers beyond 64 bits as digits', async (t) => {
  const path = join(await tempFolder(t), 'p.sqlite');
  const ids = [
    7,
    '7',
    '007',
    ' 7',
    '1e3',
    -5,
    2 ** 53,
    2n ** 53n + 1n,
    2n ** 63n - 1n,
    -(2n ** 63n),
    2n ** 63n,
    -(2n ** 64n),
    '',
    'naïve\0💧',
    null,
  ];
  writePassages(
    path,
    ids.map((id, i) => ({ id, line: i + 1, document: '{}' })),
  );
  const database = new Database(path, { readonly: true });
  t.after(() => database.close());
  const stored = database.prepare('SELECT typeof(id), id FROM passages ORDER BY row').safeIntegers().raw().all();
  assert.deepEqual(stored, [
    ['integer', 7n],
    ['text', '7'],
    ['text', '007'],
    ['text', ' 7'],
    ['text', '1e3'],
    ['integer', -5n],
    ['integer', 2n ** 53n],
    ['integer', 2n ** 53n + 1n],
    ['integer', 2n ** 63n - 1n],
    ['integer', -(2n ** 63n)],
    ['text', '9223372036854775808'],
    ['text', '-18446744073709551616'],
    ['text', ''],
    ['text', 'naïve\0💧'],
    ['null', null],
  ]);
});

test('different ids are no duplicates: neither 7 and "7", nor neighbours beyond 2^53, nor missing ids', async (t) => {
  const ids = [
    7,
    '7',
    '07',
    2n ** 53n,
    2n ** 53n + 1n,
    2n ** 63n,
    2n ** 63n + 1n,
    null,
    null,
    'a',
    'A',
    'é',
    'e\u0301',
  ];
  assert.deepEqual((await finishedRows(t, ids)).duplicates(), { count: 0, examples: [] });
});

test('duplicates are counted, and shown with rows and lines in the order they came', async (t) => {
  const ids = ['b', 'a', 'b', 5, 'b', 2n ** 53n + 1n, null, 'a', 5, 2n ** 53n + 1n, null];
  const { count, examples } = (await finishedRows(t, ids)).duplicates();
  assert.equal(count, 5);
  assert.deepEqual(examples, [
    { id: 'b', rows: [0, 2, 4], lines: [10, 30, 50] },
    { id: 'a', rows: [1, 7], lines: [20, 80] },
    { id: '5', rows: [3, 8], lines: [40, 90] },
    { id: '9007199254740993', rows: [5, 9], lines: [60, 100] },
  ]);
});

test('examples are few, however many duplicates there are', async (t) => {
  const ids = Array.from({ length: 3000 }, (_, i) => i % 30);
  const writer = await finishedRows(t, ids);
  const { count, examples } = writer.duplicates();
  assert.equal(count, 2970);
  assert.equal(examples.length, 10);
  assert.deepEqual(examples[9], { id: '9', rows: [9, 39, 69, 99, 129], lines: [100, 400, 700, 1000, 1300] });
  assert.equal(writer.duplicates(2).examples.length, 2);
});

test('a file that is there already is not written over', async (t) => {
  const path = join(await tempFolder(t), 'p.sqlite');
  writePassages(path, numberedPassages(0, 3));
  assert.throws(() => new SqlitePassageWriter(path), /already exists/);
  const file = new PassageFile(path);
  t.after(() => file.close());
  assert.equal(file.rows, 3);
});

test('an abandoned file is no passage file with fewer rows, and abandoning twice is fine', async (t) => {
  const path = join(await tempFolder(t), 'p.sqlite');
  const writer = new SqlitePassageWriter(path);
  for (const passage of numberedPassages(0, 12_000)) writer.append(passage);
  writer.abandon();
  writer.abandon();
  // Without `finishRows` there is no content hash, which an index directory asks for.
  let sha256: string | undefined;
  try {
    const file = new PassageFile(path);
    sha256 = file.sha256;
    file.close();
  } catch (error) {
    assert.match(String(error), /TrawlError/);
  }
  assert.equal(sha256, undefined);
});

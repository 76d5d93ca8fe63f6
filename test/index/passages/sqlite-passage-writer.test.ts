import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { PassageFile } from '../../../src/index/passages/passage-file.ts';
import { SqlitePassageWriter } from '../../../src/index/passages/sqlite-passage-writer.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { documentOf, numberedPassages, writePassages } from './passage-files.ts';

test('documents are read back character for character', async (t) => {
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

test('20,001 passages over several transactions are read back in order', async (t) => {
  const path = join(await tempFolder(t), 'p.sqlite');
  const writer = new SqlitePassageWriter(path);
  t.after(() => writer.abandon());
  for (const passage of numberedPassages(0, 20_001)) writer.append(passage);
  assert.equal(writer.rows, 20_001);
  writer.finishRows();
  writer.finish();
  const file = new PassageFile(path);
  t.after(() => file.close());
  assert.equal(file.rows, 20_001);
  assert.deepEqual(file.range(9_998, 4), [9_998, 9_999, 10_000, 10_001].map(documentOf));
  assert.deepEqual(file.range(20_000, 10), [documentOf(20_000)]);
  assert.deepEqual(file.range(20_001, 10), []);
  let row = 0;
  for (const document of file.documents()) assert.equal(document, documentOf(row++));
  assert.equal(file.document(20_001), undefined);
});

test('an empty file is complete and has no rows', async (t) => {
  const path = join(await tempFolder(t), 'p.sqlite');
  writePassages(path, []);
  const file = new PassageFile(path);
  t.after(() => file.close());
  assert.equal(file.rows, 0);
  assert.equal(file.document(0), undefined);
});

test('ids keep their type for look-ups; integers beyond 64 bits are digits', async (t) => {
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

test('an existing file is not overwritten', async (t) => {
  const path = join(await tempFolder(t), 'p.sqlite');
  writePassages(path, numberedPassages(0, 3));
  assert.throws(() => new SqlitePassageWriter(path), /already exists/);
  const file = new PassageFile(path);
  t.after(() => file.close());
  assert.equal(file.rows, 3);
});

test('an abandoned file is not a shorter passage file; abandoning twice is allowed', async (t) => {
  const path = join(await tempFolder(t), 'p.sqlite');
  const writer = new SqlitePassageWriter(path);
  for (const passage of numberedPassages(0, 12_000)) writer.append(passage);
  writer.abandon();
  writer.abandon();
  // Without `finishRows` there is no content hash, which an index directory requires.
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

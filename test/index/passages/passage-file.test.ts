import assert from 'node:assert/strict';
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { TrawlError } from '../../../src/base/errors.ts';
import { checkPassageFile, PassageFile, sqliteVersion } from '../../../src/index/passages/passage-file.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { damagePages, numberedPassages, writePassages } from './passage-files.ts';

async function passageFile(t: Parameters<typeof tempFolder>[0], rows = 500): Promise<string> {
  const path = join(await tempFolder(t), 'p.sqlite');
  writePassages(path, numberedPassages(0, rows));
  return path;
}

test('a finished file is accepted', async (t) => {
  checkPassageFile(await passageFile(t));
  checkPassageFile(await passageFile(t, 0));
});

test('a missing file, or a folder of that name, is an error that names it', async (t) => {
  const folder = await tempFolder(t);
  assert.throws(
    () => checkPassageFile(join(folder, 'gone.sqlite')),
    trawlError('INDEX_FILE_MISSING', /gone\.sqlite: cannot be read/),
  );
  await mkdir(join(folder, 'p.sqlite'));
  assert.throws(() => checkPassageFile(join(folder, 'p.sqlite')), trawlError('INDEX_FILE_MISSING', /p\.sqlite/));
});

test('refused files are closed', { skip: process.platform !== 'linux' && 'needs /proc/self/fd' }, async (t) => {
  const folder = await tempFolder(t);
  const openFiles = (): number => readdirSync('/proc/self/fd').length;
  const before = openFiles();
  for (let i = 0; i < 50; i++) {
    assert.throws(() => checkPassageFile(folder), TrawlError);
    assert.throws(() => new PassageFile(folder), TrawlError);
  }
  assert.ok(openFiles() < before + 10, `${openFiles()} files are open`);
});

test('a file that is too short or too long is refused as truncated', async (t) => {
  const path = await passageFile(t);
  const whole = readFileSync(path);
  for (const length of [0, 1, 99, 100, 4096, whole.length - 4096, whole.length - 1]) {
    writeFileSync(path, whole);
    truncateSync(path, length);
    assert.throws(
      () => checkPassageFile(path),
      trawlError('INDEX_FILE_TRUNCATED', new RegExp(`p\\.sqlite: has (only )?${length} bytes`)),
    );
  }
  writeFileSync(path, Buffer.concat([whole, Buffer.alloc(1)]));
  assert.throws(() => checkPassageFile(path), trawlError('INDEX_FILE_TRUNCATED'));
  writeFileSync(path, whole);
  checkPassageFile(path);
});

test('a file that is not a SQLite file is foreign', async (t) => {
  const path = join(await tempFolder(t), 'p.sqlite');
  writeFileSync(path, '{"id":"1","contents":"a corpus in place of its passages"}\n'.repeat(10));
  assert.throws(() => checkPassageFile(path), trawlError('INDEX_FILE_FOREIGN', /p\.sqlite: is not a SQLite file/));
});

test('a SQLite file of another program is foreign', async (t) => {
  const path = join(await tempFolder(t), 'p.sqlite');
  const database = new Database(path);
  database.exec('CREATE TABLE passages (row INTEGER PRIMARY KEY, document TEXT)');
  database.close();
  assert.throws(() => checkPassageFile(path), trawlError('INDEX_FILE_FOREIGN', /not a passage file/));
});

test('a passage file of another version is INDEX_VERSION_UNSUPPORTED', async (t) => {
  const path = await passageFile(t);
  const database = new Database(path);
  database.pragma('user_version = 2');
  database.close();
  assert.throws(
    () => checkPassageFile(path),
    trawlError('INDEX_VERSION_UNSUPPORTED', /version 2; this program reads version 1/),
  );
});

test('a passage file without tables is refused', async (t) => {
  for (const table of ['passages', 'meta']) {
    const path = await passageFile(t);
    const database = new Database(path);
    database.exec(`DROP TABLE ${table}`);
    database.close();
    assert.throws(
      () => new PassageFile(path),
      trawlError('INDEX_FILE_FOREIGN', /p\.sqlite: its tables cannot be read/),
    );
  }
});

test('pages of 65,536 bytes, which the header encodes as 1, are read', async (t) => {
  const path = join(await tempFolder(t), 'p.sqlite');
  const source = await passageFile(t);
  const database = new Database(source);
  database.pragma('page_size = 65536');
  database.exec(`VACUUM INTO '${path}'`);
  database.close();
  assert.equal(readFileSync(path).readUInt16BE(16), 1);
  checkPassageFile(path);
});

test('every read of a damaged page is an error that names the file and what to do', async (t) => {
  const path = await passageFile(t, 5000);
  damagePages(path);
  const file = new PassageFile(path);
  t.after(() => file.close());
  const reads: Record<string, () => unknown> = {
    documents: () => [...file.documents()],
    ids: () => [...file.ids()],
    passages: () => [...file.passages()],
    idsInOrder: () => [...file.idsInOrder()],
    line: () => Array.from({ length: 5000 }, (_, row) => file.line(row)),
    repeatedIds: () => file.repeatedIds(),
    rowsWithId: () => file.rowsWithId(),
    document: () => Array.from({ length: 5000 }, (_, row) => file.document(row)),
    longestDocument: () => file.longestDocument(),
  };
  for (const [name, read] of Object.entries(reads)) {
    assert.throws(
      read,
      trawlError('INDEX_FILE_FOREIGN', /p\.sqlite: cannot be read .* copy or build the file again/),
      name,
    );
  }
});

test('integrityProblems finds a damaged page', async (t) => {
  const path = await passageFile(t, 5000);
  damagePages(path);
  const file = new PassageFile(path);
  t.after(() => file.close());
  assert.ok(file.integrityProblems().length > 0);
});

test('any header is accepted or refused with a TrawlError', async (t) => {
  const path = await passageFile(t, 20);
  const whole = readFileSync(path);
  const random = seededRandom(7);
  const codes = new Set<string>();
  for (let i = 0; i < 300; i++) {
    const bytes = Buffer.from(whole);
    bytes[Math.floor(random() * 100)] = Math.floor(random() * 256);
    writeFileSync(path, bytes);
    try {
      new PassageFile(path).close();
      codes.add('accepted');
    } catch (error) {
      if (!(error instanceof TrawlError)) throw error;
      codes.add(error.code);
    }
  }
  for (const code of ['accepted', 'INDEX_FILE_FOREIGN', 'INDEX_FILE_TRUNCATED']) assert.ok(codes.has(code), code);
});

test('sqliteVersion returns the version of the library', () => {
  assert.match(sqliteVersion(), /^3\.\d+\.\d+$/);
});

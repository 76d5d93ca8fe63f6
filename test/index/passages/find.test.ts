import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { documentFields } from '../../../src/index/passages/document-fields.ts';
import { PassageFile } from '../../../src/index/passages/passage-file.ts';
import { SqlitePassageStore } from '../../../src/index/passages/sqlite-passage-store.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { writePassages } from './passage-files.ts';

const ROWS: readonly [id: string | number | bigint | null, document: string][] = [
  ['a', '{"id":"a","contents":"\\"Paul Walker\\"\\nAn actor.","url":"https://example.org/wiki/Paul_Walker"}'],
  ['b', '{"id":"b","contents":"\\"Paul Walker\\"\\nMore of him.","url":"https://example.org/wiki/Paul_Walker"}'],
  [12, '{"id":12,"title":"Brooklyn Bridge","text":"A bridge."}'],
  ['12', '{"id":"12","title":"\\"Heroes\\" (album)","text":"By Bowie."}'],
  [9007199254740993n, '{"id":9007199254740993,"contents":"one line"}'],
  ['c', '{"id":"c","contents":"x","url":7,"title":null}'],
  [null, 'not json, url'],
  ['e', '{"id":"e","text":"x","doc_id":290,"passage":1}'],
  ['f', '{"id":"f","text":"x","doc_id":"290","passage":0}'],
  ['d', '{"id":"d","title":"Nul\\u0000 💧 \\ud800","text":"","url":""}'],
];

async function store(t: Parameters<typeof tempFolder>[0]): Promise<SqlitePassageStore> {
  const folder = await tempFolder(t);
  const passages = ROWS.map(([id, document], row) => ({ id, line: row + 1, document }));
  const shards = [passages.slice(0, 1), passages.slice(1)].map((part, i) => {
    const path = join(folder, `passages-${i}.sqlite`);
    writePassages(path, part);
    return { path, firstRow: i, rows: part.length };
  });
  const opened = await SqlitePassageStore.open(shards);
  t.after(() => opened.close());
  return opened;
}

test('passages are found by id, URL, title and document, over shards, in row order', async (t) => {
  const passages = await store(t);
  assert.deepEqual(await passages.find('id', ['a', '12', '9007199254740993', 'none', ''], 5), [
    [0],
    [2, 3],
    [4],
    [],
    [],
  ]);
  assert.deepEqual(await passages.find('url', ['https://example.org/wiki/Paul_Walker', '', 'x'], 5), [[0, 1], [9], []]);
  assert.deepEqual(await passages.find('document', ['290', 'e', ''], 5), [[7, 8], [], []]);
  assert.deepEqual(
    await passages.find('title', ['"Paul Walker"', 'Brooklyn Bridge', '"Heroes" (album)', 'one line'], 5),
    [[0, 1], [2], [3], []],
  );
  assert.deepEqual(await passages.find('title', ['"Paul Walker"'], 1), [[0]]);
  assert.deepEqual(await passages.find('id', ['99999999999999999999', "' OR 1=1 --", '12 '], 5), [[], [], []]);
  // An integer has one text.
  assert.deepEqual(await passages.find('id', ['012', '+12', '12.0', '-012'], 5), [[], [], [], []]);
  assert.deepEqual(await passages.find('document', ['0290'], 5), [[]]);
});

test('thousands of keys are found over several messages, in order', async (t) => {
  const passages = await store(t);
  const keys = Array.from({ length: 2_000 }, (_, i) => (i % 2 === 0 ? 'a' : 'none'));
  const found = await passages.find('id', keys, 1);
  assert.deepEqual(
    found,
    keys.map((key) => (key === 'a' ? [0] : [])),
  );
  await assert.rejects(passages.find('id', keys, 1, AbortSignal.abort()), { code: 'CANCELLED' });
});

test('a file of the first release finds ids, and refuses to find titles', async (t) => {
  const path = join(await tempFolder(t), 'passages.sqlite');
  writePassages(path, [{ id: 'a', line: 1, document: ROWS[0]![1] }]);
  const database = new Database(path);
  database.exec('DROP INDEX passages_by_title; DROP INDEX passages_by_url;');
  database.close();
  const file = new PassageFile(path);
  assert.deepEqual(file.find('id', 'a', 1), [0]);
  for (const by of ['url', 'title'] as const) {
    assert.throws(() => file.find(by, 'a', 1), {
      code: 'NOT_SUPPORTED',
      message: new RegExp(`by ${by}.*Build it again`),
    });
  }
  file.close();
});

test('a look-up uses its SQLite index', async (t) => {
  const path = join(await tempFolder(t), 'passages.sqlite');
  writePassages(path, [{ id: 'a', line: 1, document: ROWS[0]![1] }]);
  const { LOOKUP_KEYS, LOOKUPS, lookupIndex } = await import('../../../src/index/passages/schema.ts');
  const database = new Database(path, { readonly: true });
  for (const by of LOOKUPS) {
    const plan = database
      .prepare(`EXPLAIN QUERY PLAN SELECT row FROM passages WHERE ${LOOKUP_KEYS[by]} IN ('x', NULL) ORDER BY row`)
      .all() as { detail: string }[];
    assert.ok(
      plan.some(({ detail }) => detail.startsWith('SEARCH') && detail.includes(lookupIndex(by))),
      JSON.stringify(plan),
    );
  }
  database.close();
});

test('the fields of a document: ids with all digits, titles from both columns', () => {
  const cases: readonly [string, Partial<ReturnType<typeof documentFields>>][] = [
    [
      ROWS[0]![1],
      { idJson: '"a"', id: 'a', title: 'Paul Walker', text: 'An actor.', contents: '"Paul Walker"\nAn actor.' },
    ],
    ['{"id":9007199254740993,"text":"t"}', { idJson: '9007199254740993', id: '9007199254740993', title: undefined }],
    ['{"id":1.5,"text":"t"}', { idJson: '1.5', id: '1.5' }],
    ['{"_id":"m","id":null,"text":"t"}', { id: 'm' }],
    ['{"text":"t","title":"T"}', { idJson: undefined, id: undefined, title: 'T', text: 't', contents: '"T"\nt' }],
    ['{"contents":"one line"}', { title: undefined, text: 'one line' }],
    ['{"contents":"\\"Half\\nquoted"}', { title: '"Half', text: 'quoted' }],
    ['[]', { contents: '', text: '' }],
    ['null', { contents: '' }],
    ['{"__proto__":{"id":5},"url":3}', { id: undefined, url: undefined }],
    ['{"text":"t","doc_id":9007199254740993}', { document: '9007199254740993', place: undefined }],
    ['{"text":"t","doc_id":null,"date":"2024"}', { document: undefined, date: '2024' }],
  ];
  for (const [document, expected] of cases) {
    const found = documentFields(document);
    for (const [name, value] of Object.entries(expected)) {
      assert.equal(found[name as keyof typeof found], value, `${document} ${name}`);
    }
  }
  assert.throws(() => documentFields('not json'), trawlError('INTERNAL', /a stored document does not parse/));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';

import fc from 'fast-check';

import { corpusDir, failsWith, readAll } from './corpus-dir.ts';

async function documents(...args: Parameters<typeof readAll>): Promise<string[]> {
  return (await readAll(...args)).map(({ document }) => document);
}

test('DPR order with its header: quoted fields are unquoted, ids are strings', async (t) => {
  const file = corpusDir(t).write(
    'psgs.tsv',
    'id\ttext\ttitle\n1\t"Aaron (""the priest"") was\ta prophet"\tAaron\n2\tHe said "no" to it\t"Say ""No"""\n',
  );
  assert.deepEqual(await documents(file), [
    '{"id":"1","title":"Aaron","text":"Aaron (\\"the priest\\") was\\ta prophet"}',
    '{"id":"2","title":"Say \\"No\\"","text":"He said \\"no\\" to it"}',
  ]);
  assert.equal((await readAll(file))[0]?.location.line, 2);
});

test('a header names the columns, in any order; further columns are kept as strings', async (t) => {
  const file = corpusDir(t).write('c.tsv', 'id\turl\ttitle\ttext\tviews\n7\thttp://x\tT\tx\t12\n');
  assert.deepEqual(await documents(file), ['{"id":"7","title":"T","text":"x","url":"http://x","views":"12"}']);
});

test('a header may name contents, and a column may be named __proto__', async (t) => {
  const file = corpusDir(t).write('c.tsv', 'id\tcontents\t__proto__\n7\tx\ty\n');
  assert.deepEqual(await documents(file), ['{"id":"7","contents":"x","__proto__":"y"}']);
});

test('R1-Searcher order: split at the first tab, the rest verbatim, canonical ids as integers', async (t) => {
  const file = corpusDir(t).write(
    'c.tsv',
    '\ufeff0\t"A   ""quoted"" text\n12\tB\twith a tab \n007\tleading zeros\nx9\tno number\n9007199254740993\tbig\n18446744073709551616\tbigger',
  );
  assert.deepEqual(await documents(file), [
    '{"id":0,"contents":"\\"A   \\"\\"quoted\\"\\" text"}',
    '{"id":12,"contents":"B\\twith a tab "}',
    '{"id":"007","contents":"leading zeros"}',
    '{"id":"x9","contents":"no number"}',
    '{"id":9007199254740993,"contents":"big"}',
    '{"id":18446744073709551616,"contents":"bigger"}',
  ]);
  assert.deepEqual(
    (await readAll(file)).map(({ id }) => id),
    [0, 12, '007', 'x9', 9007199254740993n, 18446744073709551616n],
  );
});

test('lines end with \\n, \\r\\n or \\r, and blank ones are skipped', async (t) => {
  const file = corpusDir(t).write('c.tsv', '0\ta\r\n1\tb\r2\tc\u2028d\n\n  \n3\te');
  assert.deepEqual(
    (await readAll(file)).map(({ row }) => row.contents),
    ['a', 'b', 'c\u2028d', 'e'],
  );
});

test('without a header, an id and a text are R1-Searcher order', async (t) => {
  assert.deepEqual(await documents(corpusDir(t).write('a.tsv', '1\tx\n')), ['{"id":1,"contents":"x"}']);
});

test('a header has the names of any collection of this field, in any case, and ids in any place', async (t) => {
  const dir = corpusDir(t);
  const passage = '"title":"T","text":"x"}';
  for (const [header, line, document] of [
    ['_id\ttitle\ttext', '1\tT\tx', '{"title":"T","text":"x","_id":"1"}'],
    ['doc_id\ttitle\ttext', '1\tT\tx', `{"id":"1",${passage.slice(0, -1)},"doc_id":"1"}`],
    ['ID\tTITLE\tTEXT', '1\tT\tx', `{"id":"1",${passage}`],
    ['title\ttext\tid', 'T\tx\t1', `{"id":"1",${passage}`],
    [' pid \tpassage', '1\tx', '{"id":"1","pid":"1","text":"x"}'],
    ['Passage-ID\tbody\turl', '1\tx\tu', '{"id":"1","Passage-ID":"1","text":"x","url":"u"}'],
    ['docno\tcontents', '1\tx', '{"id":"1","contents":"x","docno":"1"}'],
    ['title\ttext', 'T\tx', `{${passage}`],
  ] as const) {
    assert.deepEqual(await documents(dir.write('c.tsv', `${header}\n${line}\n`)), [document], header);
  }
});

test('options name the columns of a header with other names, and the columns of a file without one', async (t) => {
  const dir = corpusDir(t);
  const header = dir.write('a.tsv', 'key\tname\tpara\n01\tT\tx\n');
  const columns = { id: 'key', title: 'name', text: 'para' };
  assert.deepEqual(await documents(header, { columns }), ['{"id":"01","key":"01","title":"T","text":"x"}']);
  await assert.rejects(
    readAll(header, { columns: { id: 'none', text: 'para' } }),
    failsWith('CORPUS_FORMAT_UNKNOWN', `${header}:1`, '"none" of --id-column'),
  );
  const bare = dir.write('b.tsv', '1\tT\tx\n');
  assert.deepEqual(await documents(bare, { tsvLayout: 'id,title,text' }), ['{"id":"1","title":"T","text":"x"}']);
  assert.deepEqual(await documents(bare, { tsvLayout: 'pid, passage, url' }), [
    '{"id":"1","pid":"1","text":"T","url":"x"}',
  ]);
  await assert.rejects(
    readAll(bare, { tsvLayout: 'id,name,para' }),
    failsWith('CORPUS_FORMAT_UNKNOWN', `${bare}:1`, 'name it with --text-column'),
  );
  const verbatim = dir.write('c.tsv', '1\tx\n');
  await assert.rejects(
    readAll(verbatim, { columns: { text: 'para' } }),
    failsWith(
      'CORPUS_BAD_LINE',
      `${verbatim}:1`,
      'the column "para" of --text-column, found the columns "id", "contents"',
    ),
  );
});

test('the layout can be set', async (t) => {
  const dir = corpusDir(t);
  const three = dir.write('c.tsv', '1\tx\tT\n');
  assert.deepEqual(await documents(three, { tsvLayout: 'r1-searcher' }), ['{"id":1,"contents":"x\\tT"}']);
  assert.deepEqual(await documents(three, { tsvLayout: 'id,text,title' }), ['{"id":"1","title":"T","text":"x"}']);
  await assert.rejects(
    readAll(three, { tsvLayout: 'header' }),
    failsWith('CORPUS_FORMAT_UNKNOWN', `${three}:1`, 'header'),
  );
  for (const tsvLayout of ['id,title,text', 'id,text']) {
    const other = dir.write('e.tsv', 'PID\tpassage\ttitle\n1\tx\tT\n');
    await assert.rejects(
      readAll(other, { tsvLayout }),
      failsWith('CORPUS_FORMAT_UNKNOWN', `${other}:1`, 'header of other columns', '"PID", "passage", "title"'),
    );
    assert.deepEqual(await documents(other, { tsvLayout: 'id,text,title' }), ['{"id":"1","title":"T","text":"x"}']);
  }
  const verbatim = dir.write('f.tsv', 'id\tcontents\n1\tx "y\tz\n');
  assert.deepEqual(await documents(verbatim, { tsvLayout: 'r1-searcher' }), ['{"id":1,"contents":"x \\"y\\tz"}']);
  const withHeader = dir.write('d.tsv', 'id\ttext\ttitle\n1\tx\tT\n');
  assert.equal((await readAll(withHeader, { tsvLayout: 'id,text,title' })).length, 1);
  assert.equal((await readAll(withHeader, { tsvLayout: 'header' })).length, 1);
});

test('the type of ids can be set', async (t) => {
  const dir = corpusDir(t);
  const dpr = dir.write('a.tsv', 'id\ttext\ttitle\n1\tx\tT\n');
  const r1 = dir.write('b.tsv', '1\tx\n');
  assert.deepEqual(
    [
      (await readAll(dpr, { tsvIdType: 'integer' }))[0]?.id,
      (await readAll(r1, { tsvIdType: 'string' }))[0]?.id,
      (await readAll(r1, { tsvIdType: 'integer' }))[0]?.id,
    ],
    [1, '1', 1],
  );
  const zeros = dir.write('c.tsv', '1\tx\n01\ty\n');
  await assert.rejects(
    readAll(zeros, { tsvIdType: 'integer' }),
    failsWith('CORPUS_BAD_LINE', `${zeros}:2`, '--tsv-id-type'),
  );
});

const badLines: readonly (readonly [name: string, content: string, line: number, reason: string])[] = [
  ['a quoted field without an end', 'id\ttext\ttitle\n1\t"open\ttitle\n', 2, 'quoted field 2 has no closing quote'],
  ['text after a closing quote', 'id\ttext\ttitle\n1\t"a" b\ttitle\n', 2, 'follows the closing quote'],
  ['too few fields', 'id\ttext\ttitle\n1\tx\n', 2, 'expected 3 tab-separated fields, found 2'],
  ['too many fields', 'id\ttext\ttitle\n1\tx\tT\tmore\n', 2, 'expected 3 tab-separated fields, found 4'],
  ['an empty id', 'id\ttext\ttitle\n\tx\tT\n', 2, 'the id is empty'],
  ['no tab', '1\tx\n2\n', 2, 'found no tab'],
  ['an empty id before the first tab', '1\tx\n\ty\n', 2, 'the id is empty'],
];

for (const [name, content, line, reason] of badLines) {
  test(`a bad line is an error with file:line and the reason: ${name}`, async (t) => {
    const file = corpusDir(t).write('c.tsv', content);
    await assert.rejects(readAll(file), failsWith('CORPUS_BAD_LINE', `${file}:${line}: `, reason));
    await assert.doesNotReject(readAll(file, { skipBadLines: true }));
  });
}

const unknownLayouts: readonly (readonly [name: string, content: string, reason: string])[] = [
  ['one field', 'just text\n', '1 tab-separated field,'],
  ['three fields without a header, whose order differs between collections', '1\tx\tT\n', 'id,title,text'],
  ['two fields, the first not an id', 'key\tvalue\n', '2 tab-separated fields'],
  ['two ids of one rank', 'doc_id\tdocid\ttext\n', '"doc_id" and "docid" may both be the id'],
  ['two texts', 'id\tpassage\tbody\n', 'name the right one with --text-column'],
  ['four fields without a header', '1\tx\tT\tmore\n', '4 tab-separated fields'],
  ['a header with neither text nor contents', 'id\ttitle\n1\tT\n', 'no column is known to be the text'],
  ['a header that names a column twice', 'id\ttext\ttext\n', 'the column "text" is named twice'],
  ['a header with a column without a name', 'id\ttext\t\n', 'a column has no name'],
];

for (const [name, content, reason] of unknownLayouts) {
  test(`an unknown layout is refused: ${name}`, async (t) => {
    const file = corpusDir(t).write('c.tsv', content);
    await assert.rejects(readAll(file), failsWith('CORPUS_FORMAT_UNKNOWN', `${file}:1: `, reason));
  });
}

test('gzip is decompressed', async (t) => {
  assert.deepEqual(await documents(corpusDir(t).write('c.tsv.gz', gzipSync('1\tx\n'))), ['{"id":1,"contents":"x"}']);
});

/** Any text without line ends. */
const field = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll(/[\r\n]/g, ' '));

test('written TSV in DPR order is read back', async (t) => {
  const dir = corpusDir(t);
  const quote = (text: string): string => (/["\t]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const withTabs = fc.array(field).map((parts) => parts.join('\t"'));
  const rows = fc.array(fc.record({ id: fc.stringMatching(/^[a-z0-9]+$/), text: withTabs, title: withTabs }));
  await fc.assert(
    fc.asyncProperty(rows, async (written) => {
      const lines = written.map(({ id, text, title }) => [id, text, title].map(quote).join('\t'));
      const read = await readAll(dir.write('c.tsv', `id\ttext\ttitle\n${lines.join('\n')}`));
      assert.deepEqual(
        read.map(({ id, document }) => [id, JSON.parse(document)]),
        written.map(({ id, text, title }) => [id, { id, title, text }]),
      );
    }),
  );
});

test('the document preserves id and contents of lines in R1-Searcher order', async (t) => {
  const dir = corpusDir(t);
  const id = fc.oneof(fc.nat().map(String), fc.stringMatching(/^[0-9a-z]+$/));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(id, field)), async (rows) => {
      const file = dir.write('c.tsv', rows.map((row) => `${row.join('\t')}\n`).join(''));
      const read = await readAll(file, { tsvLayout: 'r1-searcher' });
      assert.deepEqual(
        read.map(({ id, row }) => [String(id), row.contents]),
        rows,
      );
      for (const { document } of read) assert.ok(!/[\r\n]/.test(document));
    }),
  );
});

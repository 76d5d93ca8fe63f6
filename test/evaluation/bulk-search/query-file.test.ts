import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { parquetWriteFile } from 'hyparquet-writer';
import { type QueryFormat, queryFormatOf, readQueryRows } from '../../../evaluation/bulk-search/query-file.ts';
import type { Question } from '../../../evaluation/read-questions.ts';
import { TopicReader } from '../../../evaluation/trec-topics.ts';
import assert from '../../helpers/assert.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

async function rowsOf(path: string, format?: QueryFormat): Promise<Question[]> {
  const rows: Question[] = [];
  for await (const some of readQueryRows(path, queryFormatOf(path, format))) rows.push(...some);
  return rows;
}

test('the format of queries follows from the name, with or without compression', () => {
  const named = (path: string): unknown[] => Object.values(queryFormatOf(path, undefined));
  assert.deepEqual(named('a/Q.TSV'), ['tsv', 'none']);
  assert.deepEqual(named('q.tsv.gz'), ['tsv', 'gzip']);
  assert.deepEqual(named('rounds.parquet'), ['parquet', 'none']);
  assert.deepEqual(named('topics.xml'), ['trec', 'none']);
  assert.deepEqual(named('dl20.topics.zst'), ['trec', 'zstd']);
  assert.deepEqual(named('questions'), ['jsonl', 'none']);
  assert.deepEqual(named('folder/.tsv.gz'), ['tsv', 'gzip']);
  assert.deepEqual(Object.values(queryFormatOf('q.tsv', 'trec')), ['trec', 'none']);
});

test('JSON lines may repeat ids and have rounds, and integer ids beyond 2^53 stay exact', async (t) => {
  const path = join(await tempFolder(t), 'q.jsonl');
  writeFileSync(
    path,
    '{"id":9007199254740993,"question":"a","round_index":1}\r\n\n{"id":9007199254740993,"question":"a","query":"b","history_queries":["c"],"round_index":2}\n',
  );
  assert.deepEqual(await rowsOf(path), [
    { id: '9007199254740993', question: 'a', roundIndex: 1 },
    { id: '9007199254740993', question: 'a', query: 'b', history: ['c'], roundIndex: 2 },
  ]);
});

test('Parquet has the columns of JSON lines', async (t) => {
  const path = join(await tempFolder(t), 'q.parquet');
  parquetWriteFile({
    filename: path,
    rowGroupSize: 2,
    columnData: [
      { name: 'id', data: [9007199254740993n, 2n, 3n], type: 'INT64' },
      { name: 'question', data: ['a', 'ä', '💧'], type: 'STRING' },
      { name: 'query', data: ['x', null, 'z'], type: 'STRING', nullable: true },
      { name: 'round_index', data: [1, 2, 3], type: 'INT32' },
    ],
  });
  assert.deepEqual(await rowsOf(path), [
    { id: '9007199254740993', question: 'a', query: 'x', roundIndex: 1 },
    { id: '2', question: 'ä', roundIndex: 2 },
    { id: '3', question: '💧', query: 'z', roundIndex: 3 },
  ]);
});

test('TSV has an id, a tab and a query, which may have tabs', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'q.tsv.gz');
  writeFileSync(path, gzipSync('\ufeff12\twho? \r\n\nq 2\ta\tb\n3\t'));
  assert.deepEqual(await rowsOf(path), [
    { id: '12', question: 'who? ' },
    { id: 'q 2', question: 'a\tb' },
    { id: '3', question: '' },
  ]);
  const bad = join(folder, 'bad.tsv');
  for (const line of ['no tab', '\tno id']) {
    writeFileSync(bad, `1\tgood\n${line}\n`);
    await assert.rejects(rowsOf(bad), trawlError('CORPUS_BAD_LINE', /bad\.tsv:2: expected an id, a tab and a query/));
  }
});

test('topics of TREC are read without end tags and labels, with entities decoded', async (t) => {
  const path = join(await tempFolder(t), 'topics.xml');
  writeFileSync(
    path,
    `<?xml version="1.0"?>
<topics>
<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations.

<narr> Narrative: <title> is not this.
</top>
<TOP><NUM>q-2</NUM><title>Topic: R&amp;D
  costs &lt; 5 &amp;lt;</title></TOP> <top><num>3</num><title></title></top>
</topics>
`,
  );
  assert.deepEqual(await rowsOf(path), [
    { id: '301', question: 'International Organized Crime' },
    { id: 'q-2', question: 'R&D costs < 5 &lt;' },
    { id: '3', question: '' },
  ]);
});

test('topics have attributes, and those of TREC-COVID and the Web track a number in their tag and a <query>', async (t) => {
  const path = join(await tempFolder(t), 'topics.xml');
  writeFileSync(
    path,
    `<topics task="COVIDSearch">
  <topic number="1">
    <query>coronavirus origin</query>
    <question>what is the origin of COVID-19</question>
    <narrative>seeking a topic on the origin</narrative>
  </topic>
  <topic number='2' type="faceted"><query>obama
     family tree</query><subtopic number="1" type="nav"><query>another</query></subtopic></topic>
  <top lang="en"><num>C041</num><title lang="en">Pesticides in baby food</title></top>
</topics>
`,
  );
  assert.deepEqual(await rowsOf(path), [
    { id: '1', question: 'coronavirus origin' },
    { id: '2', question: 'obama family tree' },
    { id: 'C041', question: 'Pesticides in baby food' },
  ]);
});

for (const [text, line, reason] of [
  ['<top>\n<num>1\n<title>a\n', 1, /has no <\/top>/],
  ['\n<top><num>1<title>a\n<top><num>2<title>b</top>', 3, /begins within the topic of line 2/],
  ['<top>\n<title>a</top>', 1, /no <num>/],
  ['<top><num> Number: <title>a</top>', 1, /no <num>/],
  ['<top><num>7\n</top>', 1, /topic 7 has no <title> and no <query>/],
  ['\n<topic number="7"><query>a', 2, /has no <\/topic>/],
  ['<topic number="7"><query>a\n<topic number="8">', 2, /begins within the topic of line 1, which has no <\/topic>/],
  ['<topic><query>a</topic>', 1, /no <num> with a number, and no attribute number/],
  ['<topics>\n<topic\nnumber="7"><query>a</topic>', 2, /the tag of a topic must end in its line/],
] as const) {
  test(`a topic that cannot be used is an error with its line: ${JSON.stringify(text)}`, async (t) => {
    const path = join(await tempFolder(t), 'bad.topics');
    writeFileSync(path, text);
    await assert.rejects(rowsOf(path), (error: Error) => {
      assert.match(error.message, reason);
      assert.ok(error.message.startsWith(`${path}:${line}: `), error.message);
      return trawlError('CORPUS_BAD_LINE')(error);
    });
  });
}

test('a topic of any lines is read the same however they are divided', () => {
  const word = fc.stringMatching(/^[a-zA-Z&;'.]{1,8}$/).filter((text) => !/^(number|topic)$/i.test(text));
  const topic = fc.record({
    id: fc.stringMatching(/^[a-z0-9-]{1,6}$/),
    words: fc.array(word, { minLength: 1, maxLength: 6 }),
  });
  const escaped = (text: string): string => text.replaceAll('&', '&amp;');
  fc.assert(
    fc.property(fc.array(topic, { maxLength: 5 }), fc.constantFrom(' ', '\n', '\n\n'), (topics, gap) => {
      const text = topics
        .map(
          ({ id, words }) =>
            `<top>${gap}<num>${gap}${id}${gap}<title>${gap}${words.map(escaped).join(gap)}${gap}</top>`,
        )
        .join(gap);
      const reader = new TopicReader();
      const fail = (line: number, reason: string): Error => new Error(`${line}: ${reason}`);
      const found = text.split('\n').flatMap((line, i) => reader.add(i + 1, line, fail));
      reader.end(fail);
      assert.deepEqual(
        found,
        topics.map(({ id, words }) => ({ id, question: words.join(' ') })),
      );
    }),
  );
});

test('a line that is not a query is an error with file:line, also of Parquet', async (t) => {
  const folder = await tempFolder(t);
  const lines = join(folder, 'q.jsonl');
  writeFileSync(lines, '{"id":1,"question":"a"}\n<top>\n');
  await assert.rejects(rowsOf(lines), trawlError('CORPUS_BAD_LINE', /q\.jsonl:2: not valid JSON/));
  const parquet = join(folder, 'q.parquet');
  parquetWriteFile({ filename: parquet, columnData: [{ name: 'id', data: [1, 2], type: 'INT32' }] });
  await assert.rejects(rowsOf(parquet), trawlError('CORPUS_BAD_LINE', /q\.parquet:1: "question" must be a string/));
  await assert.rejects(rowsOf(lines, 'parquet'), trawlError('CORPUS_FORMAT_UNKNOWN', /cannot be read as Parquet/));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';

import fc from 'fast-check';

import { documentFields } from '../../src/index/passages/document-fields.ts';
import { corpusDir, failsWith, readAll } from './corpus-dir.ts';

test('rows with contents and rows with title and text are read, and the document is the line', async (t) => {
  const lines = ['{"id": "0",  "contents": "\\"A\\"\\nb", "url": "u"}', '{"id":1,"title":"T","text":"x"}'];
  const passages = await readAll(corpusDir(t).write('c.jsonl', `${lines.join('\n')}\n`));
  assert.deepEqual(
    passages.map(({ id, document, location }) => [id, document, location.line]),
    [
      ['0', lines[0], 1],
      [1, lines[1], 2],
    ],
  );
  assert.equal(passages[0]?.row.url, 'u');
});

test('a byte order mark, blank lines, CRLF, surrounding spaces and a missing last line end are accepted', async (t) => {
  const file = corpusDir(t).write(
    'c.jsonl',
    '\ufeff{"id":1,"text":"a"}\r\n\r\n \t\n  {"id":2,"text":"b"} \r\n{"id":3,"text":"c"}',
  );
  const passages = await readAll(file);
  assert.deepEqual(
    passages.map(({ document, location }) => [document, location.line]),
    [
      ['{"id":1,"text":"a"}', 1],
      ['{"id":2,"text":"b"}', 4],
      ['{"id":3,"text":"c"}', 5],
    ],
  );
});

test('U+2028, U+2029 and U+0085 inside a passage end no line', async (t) => {
  const document = '{"id":1,"text":"a\u2028b\u2029c\u0085d"}';
  const [passage, ...rest] = await readAll(corpusDir(t).write('c.jsonl', document));
  assert.equal(passage?.document, document);
  assert.deepEqual(rest, []);
});

test('ids keep their type, and integers beyond 2^53 are exact', async (t) => {
  const ids = [
    '"7"',
    '7',
    '-3',
    '-0',
    '9007199254740991',
    '9007199254740993',
    '-123456789012345678901234567890',
    'null',
    '""',
    '1.0',
  ];
  const file = corpusDir(t).write('c.jsonl', ids.map((id) => `{"text":"t","id":${id}}\n`).join(''));
  assert.deepEqual(
    (await readAll(file)).map(({ id }) => id),
    ['7', 7, -3, 0, 9007199254740991, 9007199254740993n, -123456789012345678901234567890n, null, '', 1],
  );
});

test('a row without an id has id null', async (t) => {
  const [passage] = await readAll(corpusDir(t).write('c.jsonl', '{"text":"t"}'));
  assert.equal(passage?.id, null);
});

test('columns have the names of any collection of this field, in any case', async (t) => {
  const file = (line: string): string => corpusDir(t).write('c.jsonl', line);
  for (const [line, document] of [
    ['{"docid":"d","title":"T","text":"x"}', '{"id":"d","docid":"d","title":"T","text":"x"}'],
    ['{"ID":"d","Title":"T","TEXT":"x"}', '{"id":"d","title":"T","text":"x"}'],
    ['{"_id":"d","text":"x"}', '{"_id":"d","text":"x"}'],
    ['{"doc_id":"d","pid":7,"content":"x"}', '{"id":7,"doc_id":"d","pid":7,"text":"x"}'],
    ['{"id":null,"psg_id":"d","Contents":"x\\ny"}', '{"id":"d","psg_id":"d","contents":"x\\ny"}'],
    [
      '{"docid":9007199254740993,"segment":"x","n":1.50}',
      '{"id":9007199254740993,"docid":9007199254740993,"text":"x","n":1.50}',
    ],
    ['{"id":1,"text":"x","body":"y","docid":"z"}', '{"id":1,"text":"x","body":"y","docid":"z"}'],
    ['{"id":1,"text":null,"passage":"x","body":4}', '{"id":1,"text":"x","body":4}'],
    ['{"_index":"i","_id":"a","id":4,"text":"x"}', '{"_index":"i","_id":"a","id":4,"text":"x"}'],
    [
      '{"_index":"i","_id":"a","Title":4,"TITLE":"x","text":"x"}',
      '{"_index":"i","_id":"a","Title":4,"TITLE":"x","text":"x"}',
    ],
  ] as const) {
    const [passage] = await readAll(file(line));
    assert.equal(passage?.document, document);
    assert.equal(String(passage.id), String(JSON.parse(document)._index ? 'a' : (documentFields(document).id ?? null)));
  }
});

test('options name the columns, and what had the usual name is kept', async (t) => {
  const file = corpusDir(t).write(
    'c.jsonl',
    '{"id":12345678901234567891,"docid":"d","title":"T","text":"t","abstract":"x","head":"H","contents":null}',
  );
  const columns = { id: 'docid', text: 'abstract', title: 'head' };
  const [passage] = await readAll(file, { columns });
  assert.equal(
    passage?.document,
    '{"id":"d","original_id":12345678901234567891,"docid":"d","original_title":"T","original_text":"t","text":"x","title":"H"}',
  );
  assert.deepEqual([passage.id, passage.row.text], ['d', 'x']);
  assert.equal((await readAll(file, { columns: { id: 'title' } }))[0]?.id, 'T');
  const shared = corpusDir(t).write('d.jsonl', '{"id":1,"original_id":2,"title":"T","text":"x","k":"y"}');
  for (const [names, document] of [
    [{ id: 'k' }, '{"id":"y","original_original_id":1,"original_id":2,"title":"T","text":"x","k":"y"}'],
    [{ title: 'text' }, '{"id":1,"original_id":2,"original_title":"T","title":"x","text":"x","k":"y"}'],
    [{ text: 'title' }, '{"id":1,"original_id":2,"text":"T","original_text":"x","k":"y"}'],
    [
      { text: 'k', title: 'k' },
      '{"id":1,"original_id":2,"original_title":"T","original_text":"x","text":"y","title":"y"}',
    ],
  ] as const) {
    assert.equal((await readAll(shared, { columns: names }))[0]?.document, document);
  }
  const onlyId = corpusDir(t).write('e.jsonl', '{"id":"a","n":1}');
  assert.equal((await readAll(onlyId, { columns: { text: 'id' } }))[0]?.document, '{"text":"a","id":"a","n":1}');
  for (const [role, reason] of [
    ['id', 'expected the column "none" of --id-column, found the columns "id"'],
    ['text', '--text-column'],
    ['title', '--title-column'],
  ] as const) {
    await assert.rejects(
      readAll(file, { columns: { [role]: 'none' } }),
      failsWith('CORPUS_BAD_LINE', `${file}:1`, reason),
    );
  }
  const wrong = failsWith('CORPUS_BAD_LINE', '"contents" must be a string');
  await assert.rejects(readAll(corpusDir(t).write('d.jsonl', '{"contents":5,"content":"x"}')), wrong);
});

test('long digit strings, floats and repeated keys are read correctly', async (t) => {
  const file = corpusDir(t).write(
    'c.jsonl',
    '{"id":1,"text":"12345678901234567890","score":0.1234567890123456}\n' +
      '{"id":12345678901234567890,"id":12345678901234567891,"text":"a","text":"b"}\n',
  );
  const [first, second] = await readAll(file);
  assert.equal(first?.row.text, '12345678901234567890');
  assert.equal(first?.row.score, 0.1234567890123456);
  assert.equal(second?.id, 12345678901234567891n);
  assert.equal(second?.row.text, 'b');
});

test('a column named __proto__ is an ordinary column for both parsers', async (t) => {
  const file = corpusDir(t).write(
    'c.jsonl',
    '{"id":1,"text":"t","__proto__":{"title":5}}\n{"id":12345678901234567890,"text":"t","__proto__":{"title":5}}\n',
  );
  for (const { row } of await readAll(file)) {
    assert.deepEqual(Object.getPrototypeOf(row), Object.prototype);
    assert.equal(row.title, undefined);
    assert.ok(Object.hasOwn(row, '__proto__'));
  }
  assert.equal(Reflect.get({}, 'title'), undefined);
});

test('a document never contains a carriage return or line feed', async (t) => {
  const [passage] = await readAll(corpusDir(t).write('c.jsonl', '{"id":1,\r"text":"t"}\r\n'));
  assert.equal(passage?.document, '{"id":1, "text":"t"}');
});

const badLines: readonly (readonly [name: string, line: string | Uint8Array, reason: string])[] = [
  ['broken JSON', '{"id":1', 'not valid JSON'],
  ['NaN as Python writes it', '{"id":1,"text":"t NaN","score":NaN}', 'it has NaN, which JSON lacks; write null'],
  [
    'an infinite number as Python writes it',
    '{"id":1,"text":"t","score":-Infinity}',
    'it has -Infinity, which JSON lacks',
  ],
  ['a dictionary as Python prints it', "{'id': 1, 'text': 't'}", 'single quotes, as str() of Python writes'],
  ['UTF-16 without a byte order mark', Buffer.from('{"id":1,"text":"t"}', 'utf16le'), 'text in UTF-16'],
  ['a text that is null', '{"id":1,"text":null}', '"text" is null, expected a string'],
  ['an array of rows', '[{"id":1,"text":"t"}]', "found an array; write one object a line: jq -c '.[]'"],
  ['a no-break space around the JSON', '\u00a0{"id":1,"text":"t"}', 'not valid JSON'],
  ['an array', '[]', 'found an array'],
  ['null', 'null', 'found null'],
  ['a string', '"text"', 'found a string'],
  ['no contents and no text', '{"id":1,"foo":"t"}', 'found the columns "id", "foo"; name the text with --text-column'],
  ['two columns that may be the text', '{"passage":"t","body":"u"}', '"passage" and "body" may both be the text'],
  ['two columns that may be the id', '{"ID":1,"Id":2,"text":"u"}', 'the right one with --id-column'],
  ['an empty object', '{}', 'found no columns'],
  ['contents of another type', '{"id":1,"contents":5,"text":"t"}', '"contents" must be a string, found a number'],
  ['text of another type', '{"id":1,"text":["t"]}', '"text" must be a string, found an array'],
  ['a title of another type', '{"id":1,"title":{},"text":"t"}', '"title" must be a string, found an object'],
  ['a fraction as id', '{"id":1.5,"text":"t"}', '"id" must be'],
  ['an id with an exponent beyond 2^53', '{"id":1e300,"text":"t"}', '"id" must be'],
  ['a boolean as id', '{"id":true,"text":"t"}', 'found a boolean'],
  ['an object as id', '{"id":{"$oid":"1"},"text":"t"}', 'found an object'],
  ['an id of 2,000 digits', `{"id":${'9'.repeat(2000)},"text":"t"}`, '"id" must be'],
  ['bytes that are not UTF-8', Buffer.from('{"id":1,"text":"\xff"}', 'latin1'), 'not valid UTF-8'],
  ['a lone surrogate in CESU-8', Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22), 'not valid UTF-8'],
  [
    'nesting too deep',
    `{"id":12345678901234567890,"text":"t","x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    'nested too deeply',
  ],
];

for (const [name, line, reason] of badLines) {
  test(`a bad line is an error with file:line and the reason: ${name}`, async (t) => {
    const file = corpusDir(t).write(
      'c.jsonl',
      Buffer.concat([Buffer.from('{"id":0,"text":"good"}\n'), Buffer.from(line)]),
    );
    await assert.rejects(readAll(file), failsWith('CORPUS_BAD_LINE', `${file}:2: `, reason, '--skip-bad-lines'));
  });
}

test('messages do not quote the passage', async (t) => {
  const file = corpusDir(t).write('c.jsonl', 'confidential words');
  await assert.rejects(readAll(file), (error: Error) => !/confidential|words/.test(error.message));
});

test('the error for a UTF-16 file names the encoding', async (t) => {
  const file = corpusDir(t).write('c.jsonl', Buffer.from('\ufeff{"id":1,"text":"t"}\n', 'utf16le'));
  await assert.rejects(readAll(file), failsWith('CORPUS_BAD_LINE', `${file}:1: `, 'iconv -f UTF-16 -t UTF-8'));
  await assert.rejects(readAll(file, { skipBadLines: true }), failsWith('CORPUS_BAD_LINE', 'iconv -f UTF-16 -t UTF-8'));
});

test('a line over the limit is a bad line, and can be skipped', async (t) => {
  const file = corpusDir(t).write('c.jsonl', `{"text":"${'x'.repeat(500)}"}\n{"text":"t"}\n`);
  await assert.rejects(
    readAll(file, { maxLineBytes: 100 }),
    failsWith('CORPUS_BAD_LINE', `${file}:1: `, 'limit of 100'),
  );
  assert.equal((await readAll(file, { maxLineBytes: 100, skipBadLines: true })).length, 1);
});

test('skipped lines are reported with their reasons', async (t) => {
  const dir = corpusDir(t);
  const file = dir.write('c.jsonl', `{"text":"a"}\n${'oops\n'.repeat(12)}{"text":"b"}\n`);
  const skipped: { file: number; line: number; message: string }[] = [];
  const passages = await readAll(file, {
    skipBadLines: true,
    onSkipped: (file, line, message) => skipped.push({ file, line, message }),
  });
  assert.deepEqual(
    passages.map(({ row }) => row.text),
    ['a', 'b'],
  );
  assert.deepEqual(
    skipped.map(({ file, line }) => [file, line]),
    Array.from({ length: 12 }, (_, i) => [0, i + 2]),
  );
  assert.match(skipped[0]!.message, /c\.jsonl:2: not valid JSON/);
});

test('gzip is decompressed, with one or several members, across chunk borders', async (t) => {
  const lines = Array.from({ length: 20_000 }, (_, i) => `{"id":${i},"text":"passage ${i} ${'ä'.repeat(i % 50)}"}\n`);
  const members = [lines.slice(0, 7), lines.slice(7, 15_000), lines.slice(15_000)].map((part) =>
    gzipSync(part.join('')),
  );
  const dir = corpusDir(t);
  const expected = lines.map((line) => line.trim());
  for (const name of ['one.jsonl.gz', 'many.jsonl.gz']) {
    const file = dir.write(name, name.startsWith('one') ? gzipSync(lines.join('')) : Buffer.concat(members));
    assert.deepEqual(
      (await readAll(file)).map(({ document }) => document),
      expected,
    );
  }
});

test('truncated gzip is an error even if bad lines are skipped', async (t) => {
  const packed = gzipSync('{"id":1,"text":"t"}\n'.repeat(1000));
  const dir = corpusDir(t);
  for (const end of [15, packed.length - 9, packed.length - 1]) {
    const file = dir.write('c.jsonl.gz', packed.subarray(0, end));
    await assert.rejects(
      readAll(file, { skipBadLines: true }),
      failsWith('CORPUS_BAD_LINE', `${file}:`, 'truncated or damaged'),
    );
  }
});

test('gzip whose content was altered is an error', async (t) => {
  const packed = gzipSync('{"id":1,"text":"t"}\n');
  packed[packed.length - 6]! ^= 0xff;
  await assert.rejects(readAll(corpusDir(t).write('c.jsonl.gz', packed)), failsWith('CORPUS_BAD_LINE', 'damaged'));
});

test('plain text named .gz, and gzip named as plain text, are refused', async (t) => {
  const dir = corpusDir(t);
  const plain = dir.write('a.jsonl.gz', '{"text":"t"}');
  const packed = dir.write('b.jsonl', gzipSync('{"text":"t"}'));
  const empty = dir.write('c.jsonl.gz', '');
  for (const file of [plain, packed, empty]) {
    await assert.rejects(readAll(file), failsWith('CORPUS_FORMAT_UNKNOWN', file, '--format'));
  }
  assert.equal((await readAll(plain, { format: 'jsonl' })).length, 1);
  assert.equal((await readAll(packed, { format: 'jsonl.gz' })).length, 1);
});

const passage = fc.record(
  {
    id: fc.oneof(fc.string(), fc.maxSafeInteger(), fc.bigInt({ min: 2n ** 53n, max: 2n ** 70n })),
    title: fc.string({ unit: 'grapheme' }),
    text: fc.string({ unit: 'binary' }),
    other: fc.jsonValue(),
  },
  { requiredKeys: ['id', 'text'] },
);

test('written JSON Lines are read back', async (t) => {
  const dir = corpusDir(t);
  await fc.assert(
    fc.asyncProperty(fc.array(passage), fc.boolean(), async (rows, crlf) => {
      const lines = rows.map(({ id, ...rest }) => {
        const idText = typeof id === 'bigint' ? id.toString() : JSON.stringify(id);
        return `{"id":${idText},${JSON.stringify(rest).slice(1)}`;
      });
      const file = dir.write('c.jsonl', lines.join(crlf ? '\r\n' : '\n'));
      const passages = await readAll(file);
      assert.deepEqual(
        passages.map(({ id, document, row }) => [id, document, row.text, row.title]),
        rows.map(({ id, text, title }, i) => [Object.is(id, -0) ? 0 : id, lines[i], text, title]),
      );
    }),
  );
});

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import fc from 'fast-check';

import { readQrels } from '../../evaluation/read-qrels.ts';
import { judgementsOf, readQuestions } from '../../evaluation/read-questions.ts';
import type { Run } from '../../evaluation/run.ts';
import { formatTrecRun, readTrecRun } from '../../evaluation/trec-run.ts';
import { TrawlError } from '../../src/errors.ts';
import { failsWith, fileWith } from './evaluation-dir.ts';

test('questions with and without the optional columns; ids become text', async (t) => {
  const file = fileWith(
    t,
    '\ufeff{"id":1,"question":"Q?","query":"sub","golden_answers":["a","b"],"gold_ids":[7,"x"],"type":"bridge"}\r\n\n' +
      '{"id":"2","question":"\u2028","gold_ids":null}',
  );
  const questions = await readQuestions(file);
  assert.deepEqual(questions, [
    { id: '1', question: 'Q?', query: 'sub', goldenAnswers: ['a', 'b'], goldIds: ['7', 'x'] },
    { id: '2', question: '\u2028' },
  ]);
  assert.deepEqual(
    judgementsOf(questions),
    new Map([
      [
        '1',
        new Map([
          ['7', 1],
          ['x', 1],
        ]),
      ],
    ]),
  );
});

test('questions as BEIR has them: _id and text', async (t) => {
  const file = fileWith(
    t,
    '{"_id":"PLAIN-2","text":"Do statins cause cancer?","metadata":{}}\n{"_id":3,"question":"asked","text":"not"}',
  );
  assert.deepEqual(await readQuestions(file), [
    { id: 'PLAIN-2', question: 'Do statins cause cancer?' },
    { id: '3', question: 'asked' },
  ]);
});

for (const [line, reason] of [
  ['oops', 'not valid JSON'],
  ['[]', 'JSON object'],
  ['{"id":1}', '"question"'],
  ['{"question":"q"}', '"id"'],
  ['{"id":1.5,"question":"q"}', '"id"'],
  ['{"id":9007199254740993,"question":"q"}', 'as a string'],
  ['{"id":1,"question":"q","query":5}', '"query"'],
  ['{"id":1,"question":"q","golden_answers":"a"}', '"golden_answers"'],
  ['{"id":1,"question":"q","golden_answers":[1]}', '"golden_answers"'],
  ['{"id":1,"question":"q","gold_ids":"7"}', '"gold_ids"'],
  ['{"id":1,"question":"q","gold_ids":[9007199254740993]}', 'gold_ids'],
  ['{"id":"0","question":"again"}', 'line 1'],
  ['{"_id":"0","text":"again"}', 'line 1'],
  ['{"id":"1","text":"a passage, not a question"}', '"question"'],
  ['{"_id":"1","title":"t"}', '"text"'],
  ['{"_id":true,"text":"q"}', '"_id"'],
] as const) {
  test(`a question that cannot be used is an error with file:line: ${line}`, async (t) => {
    const file = fileWith(t, `{"id":0,"question":"good"}\n${line}\n`);
    await assert.rejects(readQuestions(file), failsWith('CORPUS_BAD_LINE', `${file}:2: `, reason));
  });
}

test('bytes that are not UTF-8 and files that are not there', async (t) => {
  const file = fileWith(t, Buffer.from('{"id":0,"question":"\xff"}', 'latin1'));
  await assert.rejects(readQuestions(file), failsWith('CORPUS_BAD_LINE', `${file}:1: `, 'UTF-8'));
  await assert.rejects(readQrels(`${file}.gone`), failsWith('CORPUS_NOT_FOUND', '.gone'));
});

test('TREC and BEIR judgements', async (t) => {
  const expected = new Map([
    [
      'q1',
      new Map([
        ['a', 2],
        ['b', 0],
      ]),
    ],
    ['q2', new Map([['a', -1]])],
  ]);
  assert.deepEqual(await readQrels(fileWith(t, 'q1 0 a 2\nq1\t0\tb  0\r\n\nq2 Q0 a -1')), expected);
  const beir = 'query-id\tcorpus-id\tscore\r\nq1\ta\t2\r\nq1\tb\t0\r\nq2\ta\t-1\r\n';
  assert.deepEqual(await readQrels(fileWith(t, beir)), expected);
});

for (const [content, line] of [
  ['q1 0 a\n', 1],
  ['q1 0 a 1 more\n', 1],
  ['q1 0 a 0.5\n', 1],
  ['q1 0 a high\n', 1],
  ['q1 0 a 1\nq1 0 a 1\n', 2],
  ['query-id\tcorpus-id\tscore\nq1\ta\n', 2],
  ['query-id\tcorpus-id\tscore\nq1\t\t1\n', 2],
] as const) {
  test(`judgements that cannot be used are an error with file:line: ${JSON.stringify(content)}`, async (t) => {
    const file = fileWith(t, content);
    await assert.rejects(readQrels(file), failsWith('CORPUS_BAD_LINE', `${file}:${line}: `));
  });
}

test('a run is written in TREC form, duplicates at their first place only', () => {
  const run: Run = new Map([
    [
      'q1',
      [
        { id: 'a', score: 0.5 },
        { id: 'a', score: 0.4 },
        { id: 'b', score: 1e-7 },
      ],
    ],
  ]);
  assert.deepEqual([...formatTrecRun(run)], ['q1 Q0 a 1 0.5 trawl\n', 'q1 Q0 b 2 1e-7 trawl\n']);
});

test('a run that was written is read back', async (t) => {
  const word = fc.stringMatching(/^[!-~]{1,8}$/);
  const results = fc
    .uniqueArray(fc.record({ id: word, score: fc.double({ noNaN: true, noDefaultInfinity: true }) }), {
      selector: ({ id }) => id,
    })
    .map((list) => list.map(({ id, score }) => ({ id, score: score + 0 })).sort((a, b) => b.score - a.score));
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.tuple(word, results), { selector: ([id]) => id }), async (entries) => {
      const run = new Map(entries.filter(([, list]) => list.length > 0));
      assert.deepEqual(await readTrecRun(fileWith(t, [...formatTrecRun(run)].join(''))), run);
    }),
    { numRuns: 50 },
  );
});

test('what a TREC run cannot hold is refused', () => {
  for (const id of ['Ed Wood', '', 'a\tb', 'a\u00a0b']) {
    assert.throws(() => [...formatTrecRun(new Map([['q', [{ id, score: 1 }]]]))], failsWith('USAGE', 'passage id'));
    assert.throws(() => [...formatTrecRun(new Map([[id, [{ id: 'a', score: 1 }]]]))], failsWith('USAGE', 'query id'));
  }
  assert.throws(() => [...formatTrecRun(new Map(), { tag: 'my run' })], failsWith('USAGE', 'tag'));
  assert.throws(() => [...formatTrecRun(new Map([['q', [{ id: 'a', score: NaN }]]]))], failsWith('USAGE', 'NaN'));
});

test('a run is read in the order of scores, then of ranks', async (t) => {
  const file = fileWith(t, 'q Q0 c 3 1 x\nq Q0 b 2 1 x\nq Q0 a 1 0.5 x\n');
  assert.deepEqual(
    (await readTrecRun(file)).get('q')?.map(({ id }) => id),
    ['b', 'c', 'a'],
  );
});

for (const line of ['q Q0 a 1 0.5', 'q Q0 a 1 high x', 'q Q0 a first 1 x', 'q Q0 z 2 1 x']) {
  test(`a run that cannot be used is an error with file:line: ${line}`, async (t) => {
    const file = fileWith(t, `q Q0 z 1 2 x\n${line}\n`);
    await assert.rejects(readTrecRun(file), failsWith('CORPUS_BAD_LINE', `${file}:2: `));
  });
}

test('random bytes give a result or a TrawlError', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      const file = fileWith(t, bytes);
      for (const read of [readQuestions, readQrels, readTrecRun]) {
        await read(file).catch((error: unknown) => assert.ok(error instanceof TrawlError, String(error)));
      }
    }),
  );
});

for (const [name, count, judged] of [
  ['hotpot_val500_pooled/queries.jsonl', 500, 500],
  ['squad_v11_dev/queries.jsonl', 10_570, 10_570],
  ['flashrag_sample/nq_test.jsonl', 17, 0],
] as const) {
  const file = join(repositoryRoot(), '..', 'shared', 'data', name);
  test(`${name} is read whole`, { skip: !existsSync(file) && `${file} is not there` }, async () => {
    const questions = await readQuestions(file);
    assert.equal(questions.length, count);
    assert.equal(judgementsOf(questions).size, judged);
  });
}

function repositoryRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
}

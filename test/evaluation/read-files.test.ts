import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { readQrels } from '../../evaluation/judgements.ts';
import { answersOf, judgementsOf, readQuestions, titleJudgementsOf } from '../../evaluation/read-questions.ts';
import { formatTrecRun, type Run } from '../../evaluation/run.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { runs } from '../helpers/runs.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { failsWith, fileWith } from './evaluation-dir.ts';

test('questions are read with and without the optional columns, and ids become strings', async (t) => {
  const file = fileWith(
    t,
    '\ufeff{"id":1,"question":"Q?","query":"sub","golden_answers":["a","b"],"gold_ids":[7,"x"],"type":"bridge"}\r\n\n' +
      '{"id":"2","question":"\u2028","gold_ids":null}\n{"id":9007199254740993,"question":"q","round_index":3,"gold_ids":[9007199254740993]}',
  );
  const questions = await readQuestions(file);
  assert.deepEqual(questions, [
    { id: '1', question: 'Q?', query: 'sub', goldenAnswers: ['a', 'b'], goldIds: ['7', 'x'], type: 'bridge' },
    { id: '2', question: '\u2028' },
    { id: '9007199254740993', question: 'q', roundIndex: 3, goldIds: ['9007199254740993'] },
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
      ['9007199254740993', new Map([['9007199254740993', 1]])],
    ]),
  );
});

test('a question may have a data set and the number of the search', async (t) => {
  const file = fileWith(t, '{"id":1,"question":"Q?","dataset":"hotpotqa","round_index":2}\n');
  assert.deepEqual(await readQuestions(file), [{ id: '1', question: 'Q?', roundIndex: 2, dataset: 'hotpotqa' }]);
});

test("questions are read from BEIR's columns _id and text", async (t) => {
  const file = fileWith(
    t,
    '{"_id":"PLAIN-2","text":"Do statins cause cancer?","metadata":{}}\n{"_id":3,"question":"asked","text":"not"}',
  );
  assert.deepEqual(await readQuestions(file), [
    { id: 'PLAIN-2', question: 'Do statins cause cancer?' },
    { id: '3', question: 'asked' },
  ]);
});

test('blank titles, answers and ids of passages judge nothing', async (t) => {
  const judged = { gold_ids: ['', 'p'], gold_titles: [' ', 'T'], golden_answers: ['', 'A'] };
  const blank = { gold_ids: [''], gold_titles: [''], golden_answers: ['\t'] };
  const file = fileWith(
    t,
    [judged, blank].map((columns, id) => `${JSON.stringify({ id, question: 'q', ...columns })}\n`).join(''),
  );
  const questions = await readQuestions(file);
  assert.deepEqual(
    questions.map(({ goldIds, goldTitles, goldenAnswers }) => [goldIds, goldTitles, goldenAnswers]),
    [
      [['p'], ['T'], ['A']],
      [[], [], []],
    ],
  );
  for (const judgements of [judgementsOf(questions), titleJudgementsOf(questions), answersOf(questions)])
    assert.deepEqual([...judgements.keys()], ['0']);
});

test('a title without a key, such as _, is no page', () => {
  const question = { id: '1', question: 'q' };
  assert.equal(titleJudgementsOf([{ ...question, goldTitles: ['_', '""'] }]).size, 0);
  assert.deepEqual(
    titleJudgementsOf([{ ...question, goldTitles: ['_', 'Ed_Wood'] }]),
    new Map([['1', new Map([['ed wood', 1]])]]),
  );
});

test('yes, no and the like are no answers that passages are searched for', () => {
  const answers = (...goldenAnswers: readonly string[]): readonly string[] | undefined =>
    answersOf([{ id: '1', question: 'q', goldenAnswers }]).get('1');
  for (const label of ['yes', 'No', ' no. ', 'True', 'SUPPORTS', 'REFUTES', 'NOT ENOUGH INFO'])
    assert.equal(answers(label), undefined, label);
  for (const answer of ['No Doubt', 'yes, he was', 'supports', 'noon']) assert.deepEqual(answers(answer), [answer]);
  assert.deepEqual(answers('no', 'none of them'), ['none of them']);
});

for (const [line, reason] of [
  ['oops', 'not valid JSON'],
  ['[]', 'JSON object'],
  ['{"id":1}', '"question"'],
  ['{"question":"q"}', '"id"'],
  ['{"id":1.5,"question":"q"}', '"id"'],
  ['{"id":1,"question":"q","round_index":1.5}', '"round_index"'],
  ['{"id":1,"question":"q","round_index":-1}', '"round_index"'],
  ['{"id":1,"question":"q","query":5}', '"query"'],
  ['{"id":1,"question":"q","dataset":5}', '"dataset"'],
  ['{"id":1,"question":"q","golden_answers":"a"}', '"golden_answers"'],
  ['{"id":1,"question":"q","golden_answers":[1]}', '"golden_answers"'],
  ['{"id":1,"question":"q","gold_ids":"7"}', '"gold_ids"'],
  ['{"id":1,"question":"q","gold_ids":[1e300]}', 'gold_ids'],
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

test('invalid UTF-8 and a missing file are errors', async (t) => {
  const file = fileWith(t, Buffer.from('{"id":0,"question":"\xff"}', 'latin1'));
  await assert.rejects(readQuestions(file), failsWith('CORPUS_BAD_LINE', `${file}:1: `, 'UTF-8'));
  await assert.rejects(readQrels(`${file}.gone`), failsWith('CORPUS_NOT_FOUND', '.gone'));
});

test('judgements are read in the formats of TREC and BEIR', async (t) => {
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
  // As pandas writes a column of numbers.
  const decimals = 'query-id\tcorpus-id\tscore\nq1\ta\t2.0\nq1\tb\t0.\nq2\ta\t-1.00\n';
  assert.deepEqual(await readQrels(fileWith(t, decimals)), expected);
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

test('a run is written in the format of TREC, and a duplicate only with its first rank', () => {
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

test('a written run has every result of every query, in order, with its exact score', () => {
  const word = fc.stringMatching(/^[!-~]{1,8}$/);
  const results = fc
    .uniqueArray(fc.record({ id: word, score: fc.double({ noNaN: true, noDefaultInfinity: true }) }), {
      selector: ({ id }) => id,
    })
    .map((list) => list.map(({ id, score }) => ({ id, score: score + 0 })).sort((a, b) => b.score - a.score));
  fc.assert(
    fc.property(fc.uniqueArray(fc.tuple(word, results), { selector: ([id]) => id }), (entries) => {
      const lines = [...formatTrecRun(new Map(entries))].map((line) => line.split(' '));
      const expected = entries.flatMap(([queryId, list]) =>
        list.map(({ id, score }, i) => [queryId, 'Q0', id, String(i + 1), score]),
      );
      assert.deepEqual(
        lines.map(([queryId, q0, id, rank, score]) => [queryId, q0, id, rank, Number(score)]),
        expected,
      );
    }),
    { numRuns: runs(20, 50) },
  );
});

test('an id, a tag or a score that a TREC run cannot have is refused', () => {
  for (const id of ['Ed Wood', '', 'a\tb', 'a\u00a0b']) {
    assert.throws(() => [...formatTrecRun(new Map([['q', [{ id, score: 1 }]]]))], failsWith('USAGE', 'passage id'));
    assert.throws(() => [...formatTrecRun(new Map([[id, [{ id: 'a', score: 1 }]]]))], failsWith('USAGE', 'query id'));
  }
  assert.throws(() => [...formatTrecRun(new Map(), { tag: 'my run' })], failsWith('USAGE', 'tag'));
  assert.throws(() => [...formatTrecRun(new Map([['q', [{ id: 'a', score: NaN }]]]))], failsWith('USAGE', 'NaN'));
});

test('random bytes give a result or a TrawlError', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      const file = fileWith(t, bytes);
      for (const read of [readQuestions, readQrels]) {
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
  test(`all ${count} questions of ${name} are read`, { skip: withoutSharedData(name) }, async () => {
    const questions = await readQuestions(sharedData(name));
    assert.equal(questions.length, count);
    assert.equal(judgementsOf(questions).size, judged);
  });
}

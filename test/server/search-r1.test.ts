import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAKE_DOCUMENTS, FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, errorOf, post } from './build.ts';

interface Scored {
  result: { document: { id: unknown; contents: string; url?: string }; score: number }[][];
}

test('with scores each hit is a document with its score', async (t) => {
  const app = build(t);
  const { status, json, headers } = await post(app, { queries: ['a', 'b'], topk: 2, return_scores: true });
  assert.equal(status, 200);
  assert.equal(headers['content-type'], 'application/json; charset=utf-8');
  const { result } = json as Scored;
  assert.equal(result.length, 2);
  for (const list of result) {
    assert.equal(list.length, 2);
    for (const hit of list) assert.deepEqual(Object.keys(hit), ['document', 'score']);
    assert.deepEqual(
      list.map((hit) => hit.score),
      [Math.fround(0.9), Math.fround(0.8)],
    );
  }
});

test('without scores each hit is the document, for one, two and three queries', async (t) => {
  const app = build(t);
  for (const queries of [['a'], ['a', 'b'], ['a', 'b', 'c']]) {
    const bare = (await post(app, { queries, topk: 2 })).json as { result: unknown[][] };
    const scored = (await post(app, { queries, topk: 2, return_scores: true })).json as Scored;
    assert.deepEqual(
      bare.result,
      scored.result.map((list) => list.map((hit) => hit.document)),
    );
  }
});

test('a document is returned as it is stored, character for character', async (t) => {
  const { text } = await post(build(t), { queries: [''], topk: 5, return_scores: true });
  for (const i of [0, 2, 4]) assert.ok(text.includes(`{"document":${FAKE_DOCUMENTS[i]!},"score":`), FAKE_DOCUMENTS[i]!);
});

test('a row without contents gets them from title and text, and keeps its other columns', async (t) => {
  const retriever = new FakeRetriever({ documents: [FAKE_DOCUMENTS[1]!] });
  const { json } = await post(build(t, retriever), { queries: ['x'] });
  assert.deepEqual((json as { result: unknown }).result, [
    [
      {
        id: 's-1',
        title: 'Brooklyn Bridge',
        text: 'A bridge in New York.',
        url: 'https://example.org/b',
        contents: '"Brooklyn Bridge"\nA bridge in New York.',
      },
    ],
  ]);
});

test('topk absent, null, 0 or false is the server’s default; numbers are parsed laxly', async (t) => {
  const retriever = new FakeRetriever();
  const app = build(t, retriever, { topk: 4 });
  const asked = [undefined, null, 0, false, '0', 2, '2', 2.0, ' 2 ', true];
  for (const topk of asked) assert.equal((await post(app, { queries: ['a'], topk })).status, 200);
  assert.deepEqual(
    retriever.calls.map((call) => call.k),
    [4, 4, 4, 4, 4, 2, 2, 2, 2, 1],
  );
});

test('an empty list of queries gets an empty result, with and without scores', async (t) => {
  const app = build(t);
  assert.equal((await post(app, { queries: [] })).text, '{"result":[]}');
  assert.equal((await post(app, { queries: [], return_scores: true, questions: [] })).text, '{"result":[]}');
});

test('any text is a query: empty, control characters, NUL, lone surrogates, very long', async (t) => {
  const retriever = new FakeRetriever();
  const queries = ['', ' ', '\u0000', '\u0001\u001b[2J', '\ud800', 'x\udfff', '💧', 'a [SEP] b', 'w '.repeat(50_000)];
  const { status, json } = await post(build(t, retriever), { queries });
  assert.equal(status, 200);
  assert.deepEqual(retriever.calls[0]?.queries, queries);
  const answer = json as { result: unknown[]; truncated: number[] };
  assert.equal(answer.result.length, queries.length);
  assert.deepEqual(answer.truncated, [8], 'the position of the truncated query');
});

test('unknown fields are ignored, also __proto__ and constructor', async (t) => {
  const app = build(t);
  const body =
    '{"queries":["a"],"__proto__":{"topk":9},"constructor":{"prototype":{}},"hasOwnProperty":1,"filters":[],"toString":null}';
  const { status } = await post(app, body);
  assert.equal(status, 200);
  assert.equal(({} as Record<string, unknown>).topk, undefined);
});

test('inherited properties are not fields', async (t) => {
  const { status, json } = await post(build(t), '{"__proto__":{"queries":["a"]}}');
  assert.equal(status, 422);
  assert.equal(errorOf(json).code, 'INVALID_REQUEST');
});

test('a wrong value is a 422 in FastAPI’s format', async (t) => {
  const app = build(t);
  const cases: readonly [unknown, { type: string; loc: unknown[]; input?: unknown }][] = [
    [{}, { type: 'missing', loc: ['body', 'queries'] }],
    [{ queries: 'abc' }, { type: 'list_type', loc: ['body', 'queries'], input: 'abc' }],
    [{ queries: null }, { type: 'list_type', loc: ['body', 'queries'], input: null }],
    [{ queries: { 0: 'a' } }, { type: 'list_type', loc: ['body', 'queries'] }],
    [{ queries: [1] }, { type: 'string_type', loc: ['body', 'queries', 0], input: 1 }],
    [{ queries: ['a', ['b']] }, { type: 'string_type', loc: ['body', 'queries', 1] }],
    [
      { queries: ['a'], topk: 2.5 },
      { type: 'int_from_float', loc: ['body', 'topk'], input: 2.5 },
    ],
    [
      { queries: ['a'], topk: -1 },
      { type: 'greater_than_equal', loc: ['body', 'topk'], input: -1 },
    ],
    [
      { queries: ['a'], topk: 'x' },
      { type: 'int_parsing', loc: ['body', 'topk'], input: 'x' },
    ],
    [
      { queries: ['a'], return_scores: null },
      { type: 'bool_type', loc: ['body', 'return_scores'], input: null },
    ],
    [
      { queries: ['a'], return_scores: 'maybe' },
      { type: 'bool_parsing', loc: ['body', 'return_scores'] },
    ],
    [
      { queries: ['a'], questions: 'q' },
      { type: 'list_type', loc: ['body', 'questions'] },
    ],
    [
      { queries: ['a'], questions: [1] },
      { type: 'string_type', loc: ['body', 'questions', 0] },
    ],
    [[], { type: 'model_attributes_type', loc: ['body'] }],
    ['null', { type: 'model_attributes_type', loc: ['body'] }],
    ['"a"', { type: 'model_attributes_type', loc: ['body'] }],
    ['', { type: 'missing', loc: ['body'] }],
  ];
  for (const [body, expected] of cases) {
    const { status, json } = await post(app, body);
    const name = JSON.stringify(body);
    assert.equal(status, 422, name);
    const { code, message, detail } = errorOf(json);
    assert.equal(code, 'INVALID_REQUEST', name);
    assert.ok(message.length > 10, name);
    const [issue] = detail as { type: string; loc: unknown[]; msg: string; input?: unknown }[];
    assert.equal(issue?.type, expected.type, name);
    assert.deepEqual(issue?.loc, expected.loc, name);
    if ('input' in expected) assert.equal(issue?.input, expected.input, name);
  }
});

test('all wrong queries are reported at once, up to twenty', async (t) => {
  const app = build(t);
  const two = errorOf((await post(app, { queries: [1, null] })).json);
  assert.deepEqual(two.detail, [
    { type: 'string_type', loc: ['body', 'queries', 0], msg: 'Input should be a valid string', input: 1 },
    { type: 'string_type', loc: ['body', 'queries', 1], msg: 'Input should be a valid string', input: null },
  ]);
  const many = errorOf((await post(app, { queries: new Array(1_000).fill(7) })).json);
  assert.equal((many.detail as unknown[]).length, 20);
  assert.match(many.message, /and 999 more/);
});

test('questions are paired with their queries; null and "" leave a query alone', async (t) => {
  const retriever = new FakeRetriever();
  const app = build(t, retriever);
  await post(app, { queries: ['a', 'b', 'c', ''], questions: ['Q', null, '', 'Q2'] });
  assert.deepEqual(retriever.calls[0]?.queries, [
    { question: 'Q', query: 'a' },
    'b',
    'c',
    { question: 'Q2', query: '' },
  ]);
  await post(app, { queries: ['a'], questions: null });
  assert.deepEqual(retriever.calls[1]?.queries, ['a']);
});

test('history queries are embedded if the template has them', async (t) => {
  const retriever = new FakeRetriever();
  const app = build(t, retriever);
  const body = { queries: ['a', 'b', 'c'], questions: ['Q', null, 'R'], history_queries: [['x', 'y'], [], null] };
  await post(app, { ...body, template: 'question-history-query' });
  await post(app, body);
  const queries = [{ question: 'Q', query: 'a', history: ['x', 'y'] }, 'b', { question: 'R', query: 'c' }];
  assert.deepEqual(
    retriever.calls.map((call) => [call.queries, call.template]),
    [
      [queries, 'question-history-query'],
      [queries, undefined],
    ],
  );
  const { status, json } = await post(app, { queries: ['a'], history_queries: [['x'], ['y']] });
  assert.equal(status, 422);
  assert.match(errorOf(json).message, /2 history_queries for 1 queries/);
  for (const wrong of [{ history_queries: ['x'] }, { history_queries: [[1]] }, { template: 'everything' }]) {
    assert.equal((await post(app, { queries: ['a'], ...wrong })).status, 422);
  }
});

test('another number of questions than queries is refused, with both numbers', async (t) => {
  const { status, json } = await post(build(t), { queries: ['a', 'b', 'c'], questions: ['Q'] });
  assert.equal(status, 422);
  assert.match(errorOf(json).message, /1 questions for 3 queries/);
});

test('a string query is SkyRL’s request and gets an outer list of length one', async (t) => {
  const retriever = new FakeRetriever();
  const app = build(t, retriever);
  const { status, json } = await post(app, { query: 'a', topk: 2, return_scores: true });
  assert.equal(status, 200);
  const { result } = json as Scored;
  assert.deepEqual([result.length, result[0]?.length], [1, 2]);
  const bare = (await post(app, { query: 'a' })).json as { result: unknown[][] };
  assert.deepEqual([bare.result.length, bare.result[0]?.length], [1, 3]);
});

test('a single query may have a question, as text or as a list of one', async (t) => {
  const retriever = new FakeRetriever();
  const app = build(t, retriever);
  const together = { question: 'Q', query: 'a' };
  const cases: readonly [object, unknown][] = [
    [{ question: 'Q' }, together],
    [{ questions: ['Q'] }, together],
    [{ question: 'Q', questions: null }, together],
    [{ question: null, questions: ['Q'] }, together],
    [{ question: '' }, 'a'],
    [{ question: null }, 'a'],
    [{ questions: [null] }, 'a'],
    [{ questions: null }, 'a'],
  ];
  for (const [fields, expected] of cases) {
    assert.equal((await post(app, { query: 'a', ...fields })).status, 200, JSON.stringify(fields));
    assert.deepEqual(retriever.calls.at(-1)?.queries, [expected], JSON.stringify(fields));
  }
  for (const [fields, message] of [
    [{ questions: [] }, /0 questions for 1 queries/],
    [{ questions: ['Q', 'R'] }, /2 questions for 1 queries/],
    [{ questions: 'Q' }, /questions: Input should be a valid list/],
    [{ questions: [1] }, /questions\.0: Input should be a valid string/],
    [{ question: ['Q'] }, /question: Input should be a valid string/],
    [{ question: 'Q', questions: ['Q'] }, /not both/],
  ] as const) {
    const { status, json } = await post(app, { query: 'a', ...fields });
    assert.equal(status, 422, JSON.stringify(fields));
    assert.equal(errorOf(json).code, 'INVALID_REQUEST');
    assert.match(errorOf(json).message, message);
  }
});

test('query takes precedence over queries unless it is null', async (t) => {
  const retriever = new FakeRetriever();
  const app = build(t, retriever);
  await post(app, { query: 'one', queries: ['two', 'three'] });
  await post(app, { query: null, queries: ['two', 'three'] });
  assert.deepEqual(
    retriever.calls.map((call) => call.queries),
    [['one'], ['two', 'three']],
  );
});

test('a query of another type without queries is the error of SkyRL’s server', async (t) => {
  const { status, json } = await post(build(t), { query: 5 });
  assert.equal(status, 422);
  assert.deepEqual(errorOf(json).detail, [
    { type: 'string_type', loc: ['body', 'query'], msg: 'Input should be a valid string', input: 5 },
  ]);
});

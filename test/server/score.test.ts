import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, errorOf, postTo } from './build.ts';

interface Passage {
  readonly row: number;
  readonly id?: unknown;
  readonly dense?: { readonly score: number; readonly rank: number | null };
  readonly answer?: boolean;
}

interface Reply {
  readonly results: readonly { readonly ok: boolean; readonly passages: readonly (Passage | null)[] }[];
}

test('each query has its own passages, ids first, and null for an unknown one', async (t) => {
  const app = build(t);
  const { status, json, text } = await postTo(app, '/v1/score', {
    queries: [
      { query: '', ids: ['s-1', 'none'], rows: [4, 99] },
      { query: '', rows: [0] },
      { query: '', question: 'q' },
    ],
    modes: ['dense'],
    maxRank: 4,
  });
  assert.equal(status, 200, text);
  assert.deepEqual(
    (json as Reply).results.map(({ passages }) => passages),
    [
      [
        { row: 1, id: 's-1', dense: { score: -2, rank: 2 } },
        null,
        { row: 4, id: '4', dense: { score: -5, rank: null } },
        null,
      ],
      [{ row: 0, id: '0', dense: { score: -1, rank: 1 } }],
      [],
    ],
  );
});

test('by default the scores are those that the index and the server have, also that of the reranker', async (t) => {
  const retriever = new FakeRetriever();
  const app = build(t, retriever);
  const { json } = await postTo(app, '/v1/score', { queries: [{ question: 'q', query: 'a', rows: [1] }], maxRank: 0 });
  const [passage] = (json as { results: { passages: (Passage & { rerank?: object; bm25?: object })[] }[] }).results[0]!
    .passages;
  assert.deepEqual(Object.keys(passage!), ['row', 'id', 'dense', 'rerank']);
  assert.deepEqual(Object.keys(passage!.rerank!), ['score']);
  const [call] = retriever.rerankCalls;
  assert.deepEqual(call!.lists, [{ query: 'q a', passages: ['"Brooklyn Bridge"\nA bridge in New York.'] }]);
});

test('with golden answers each passage has whether one stands in it, by whole tokens', async (t) => {
  const app = build(t);
  const answersOf = async (answers: string[] | null): Promise<unknown> => {
    const { json } = await postTo(app, '/v1/score', { queries: [{ query: '', rows: [0, 1], answers }], modes: [] });
    return (json as Reply).results[0]!.passages.map((passage) => passage!.answer);
  };
  assert.deepEqual(await answersOf(['New York']), [false, true]);
  assert.deepEqual(await answersOf(['nothing', 'american ACTOR']), [true, false]);
  assert.deepEqual(await answersOf(['amer']), [false, false]);
  assert.deepEqual(await answersOf([]), [false, false]);
  assert.deepEqual(await answersOf(null), [undefined, undefined]);
});

test('an id beyond 2^53 keeps its digits', async (t) => {
  const app = build(t);
  const { text } = await postTo(app, '/v1/score', { queries: [{ query: '', ids: ['9007199254740993'] }] });
  assert.match(text, /"row":2,"id":9007199254740993,/);
});

test('wrong values of /v1/score and /v1/passages are refused', async (t) => {
  const app = build(t, new FakeRetriever(), { maxHits: 100, maxK: 100, maxQueries: 50 });
  const rows = Array.from({ length: 40 }, (_, i) => i % 5);
  const cases: readonly [path: string, body: object, status: number, code: string, loc?: unknown[]][] = [
    ['/v1/score', {}, 422, 'INVALID_REQUEST', ['body', 'queries']],
    ['/v1/score', { queries: ['a'] }, 422, 'INVALID_REQUEST', ['body', 'queries', 0]],
    ['/v1/score', { queries: [{ ids: ['0'] }] }, 422, 'INVALID_REQUEST', ['body', 'queries', 0, 'query']],
    ['/v1/score', { queries: [{ query: 'a', rows: [-1] }] }, 422, 'INVALID_REQUEST', ['body', 'queries', 0, 'rows', 0]],
    ['/v1/score', { queries: [], maxRank: 100_001 }, 422, 'INVALID_REQUEST', ['body', 'maxRank']],
    ['/v1/score', { queries: [{ query: 'a' }], modes: ['sparse'] }, 422, 'INVALID_REQUEST', ['body', 'modes', 0]],
    ['/v1/score', { queries: [{ query: 'a' }], k: 3 }, 422, 'INVALID_REQUEST', ['body', 'k']],
    ['/v1/score', { queries: [{ query: 'a' }], maxRank: 101 }, 422, 'K_TOO_LARGE', ['body', 'maxRank']],
    [
      '/v1/score',
      { queries: [0, 1, 2].map(() => ({ query: 'a', rows })), maxRank: 0 },
      422,
      'K_TOO_LARGE',
      ['body', 'queries'],
    ],
    ['/v1/passages', { ids: 's-1' }, 422, 'INVALID_REQUEST', ['body', 'ids']],
    ['/v1/passages', { ids: [1.5] }, 422, 'INVALID_REQUEST', ['body', 'ids', 0]],
    ['/v1/passages', { id: ['s-1'] }, 422, 'INVALID_REQUEST', ['body', 'id']],
    ['/v1/passages', { ids: rows, rows }, 422, 'K_TOO_LARGE', ['body', 'ids']],
    ['/v1/passages', { index: 'none' }, 404, 'NOT_FOUND'],
    ['/v1/passages', { cut: { words: 3 } }, 422, 'INVALID_REQUEST', ['body', 'cut']],
    ['/v1/passages', { wholeDocuments: true, cut: {} }, 422, 'INVALID_REQUEST', ['body', 'cut']],
    ['/v1/passages', { wholeDocuments: true, cut: { words: 1, tokens: 1 } }, 422, 'INVALID_REQUEST', ['body', 'cut']],
    ['/v1/passages', { wholeDocuments: true, cut: { tokens: 0 } }, 422, 'INVALID_REQUEST', ['body', 'cut', 'tokens']],
    ['/v1/passages', { wholeDocuments: true, cut: { lines: 1 } }, 422, 'INVALID_REQUEST', ['body', 'cut', 'lines']],
    ['/v1/passages', { wholeDocuments: true, cut: 3 }, 422, 'INVALID_REQUEST', ['body', 'cut']],
  ];
  for (const [path, body, status, code, loc] of cases) {
    const answer = await postTo(app, path, body);
    const name = `${path} ${JSON.stringify(body).slice(0, 100)}`;
    assert.deepEqual([answer.status, errorOf(answer.json).code], [status, code], name);
    if (loc !== undefined) {
      assert.deepEqual((errorOf(answer.json).detail as { loc: unknown[] }[])[0]?.loc, loc, name);
    }
  }
});

test('/v1/passages has one entry per id and row, and with wholeDocuments the document of each', async (t) => {
  const app = build(t);
  const plain = await postTo(app, '/v1/passages', { ids: ['s-1', 3, 'none'], rows: [0] });
  const { passages, ...rest } = plain.json as { passages: { row: number }[] };
  assert.deepEqual(
    passages.map((passage) => passage?.row),
    [1, 3, undefined, 0],
  );
  assert.deepEqual(rest, { index: { name: 'fake-sample', generation: 'generation-1' } });
  const whole = await postTo(app, '/v1/passages', { ids: ['s-1', 'none'], wholeDocuments: true });
  assert.deepEqual((whole.json as { documents: unknown[] }).documents, [
    {
      id: 's-1',
      url: 'https://example.org/b',
      title: 'Brooklyn Bridge',
      text: 'A bridge in New York.',
      whole: true,
      rows: [1],
    },
    null,
  ]);
  const none = await postTo(app, '/v1/passages', {});
  assert.deepEqual((none.json as { passages: unknown[] }).passages, []);
});

test('/v1/passages cuts whole documents by words, characters or tokens, and says which are not whole', async (t) => {
  const documents = ['one two three', 'short'].map((text, id) => JSON.stringify({ id, text }));
  const app = build(t, new FakeRetriever({ documents }));
  for (const [cut, text, whole] of [
    [{ words: 2 }, 'one two', false],
    [{ characters: 5 }, 'one t', false],
    [{ tokens: 1 }, 'one', false],
    [{ tokens: 3 }, 'one two three', true],
    [null, 'one two three', true],
  ] as const) {
    const { json } = await postTo(app, '/v1/passages', { rows: [0, 9, 1], wholeDocuments: true, cut });
    const [first, none, last] = (json as { documents: { text: string; whole: boolean }[] }).documents;
    assert.deepEqual([first!.text, first!.whole, none], [text, whole, null], JSON.stringify(cut));
    assert.deepEqual([last!.text, last!.whole], ['short', true]);
  }
});

test('a document with more passages than --max-k says that it is not whole', async (t) => {
  const documents = Array.from({ length: 6 }, (_, i) =>
    JSON.stringify({ id: i, text: `part ${i}`, doc_id: 'd', passage: i }),
  );
  const app = build(t, new FakeRetriever({ documents }), { maxK: 5 });
  const { json } = await postTo(app, '/v1/passages', { rows: [5], wholeDocuments: true });
  const [document] = (json as { documents: { text: string; whole: boolean }[] }).documents;
  assert.deepEqual([document!.text, document!.whole], ['part 0 part 1 part 2 part 3 part 4', false]);
});

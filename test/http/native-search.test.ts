import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ErrorCode, TrawlError } from '../../src/errors.ts';
import type { QueryOutcome } from '../../src/retrieval/retriever.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, errorOf, postTo } from './build.ts';

const DOCUMENTS = Array.from({ length: 30 }, (_, i) =>
  JSON.stringify({ id: `p${i}`, title: `Title ${Math.floor(i / 2)}`, text: `Passage ${i} tells of bridges.` }),
);

interface Hit {
  readonly row: number;
  readonly id?: unknown;
  readonly score: number;
  readonly text: string;
  readonly whole: boolean;
  readonly document?: unknown;
  readonly from?: unknown[];
}

interface Answer {
  readonly index: { name: string; generation: string };
  readonly results: {
    ok: boolean;
    embedded?: { text: string; tokens: number; cut: string };
    certificate?: { exact: boolean; rescored: number | null };
    hits?: Hit[];
    error?: { code: string; message: string };
  }[];
  readonly hits?: Hit[];
  readonly timings: Record<string, number>;
}

async function ask(app: Parameters<typeof postTo>[0], body: object): Promise<Answer> {
  const { status, json, text } = await postTo(app, '/v1/search', body);
  assert.equal(status, 200, text);
  return json as Answer;
}

test('an answer says what was embedded, how exact it is and where its time went', async (t) => {
  const retriever = new FakeRetriever({ documents: DOCUMENTS });
  const app = build(t, retriever, { topk: 4 });
  const answer = await ask(app, {
    queries: ['', { question: 'Q', query: 'a' }, { query: 'b' }, { question: null, query: 'c' }],
  });
  assert.deepEqual(answer.index, { name: 'fake-sample', generation: 'generation-1' });
  assert.deepEqual(
    answer.results.map((result) => result.embedded?.text),
    ['', 'Q [SEP] a', 'b', 'c'],
  );
  assert.deepEqual(answer.results[0]!.certificate, { exact: true, rescored: 4 });
  assert.equal(answer.results[0]!.embedded?.cut, 'nothing');
  assert.deepEqual(answer.timings, { queueMs: 2, embedMs: 1.25, searchMs: 0.5, fetchMs: 0.25 });
  assert.equal(retriever.calls[0]?.k, 4);
  assert.equal(retriever.calls[0]?.truncate, 'tail');
  const [hit] = answer.results[0]!.hits!;
  assert.deepEqual(hit, {
    row: 0,
    id: 'p0',
    title: 'Title 0',
    score: Math.fround(0.9),
    text: '"Title 0"\nPassage 0 tells of bridges.',
    whole: true,
  });
});

test('passages seen before are left out and the list is still full', async (t) => {
  const retriever = new FakeRetriever({ documents: DOCUMENTS });
  const app = build(t, retriever);
  const { results } = await ask(app, { queries: [''], k: 3, exclude: ['p0', 'p2', 'nobody'] });
  assert.deepEqual(
    results[0]!.hits!.map(({ id }) => id),
    ['p1', 'p3', 'p4'],
  );
  assert.equal(retriever.calls.length, 1);
  const integers = build(
    t,
    new FakeRetriever({ documents: ['{"id":1,"text":"a"}', '{"id":9007199254740993,"text":"b"}'] }),
  );
  const left = await ask(integers, { queries: [''], exclude: [1, '9007199254740993'] });
  assert.deepEqual(left.results[0]!.hits, []);
});

test('where an excluded id stands for many passages it is looked for further down', async (t) => {
  const documents = Array.from({ length: 60 }, (_, i) => JSON.stringify({ id: i < 50 ? 'same' : `p${i}`, text: 'x' }));
  const retriever = new FakeRetriever({ documents });
  const { results } = await ask(build(t, retriever), { queries: [''], k: 2, exclude: ['same'] });
  assert.deepEqual(
    results[0]!.hits!.map(({ id }) => id),
    ['p50', 'p51'],
  );
  assert.ok(retriever.calls.length > 1);
  const fused = await ask(build(t, retriever), { queries: ['', 'b'], k: 2, exclude: ['same'], fuse: 'rrf' });
  assert.deepEqual(
    fused.hits!.map(({ id }) => id),
    ['p50', 'p51'],
  );
});

test('ids that no list has do not change what is fused, and fusion looks at as many hits as it is told', async (t) => {
  // Row i is the i-th of the first query and the last but i of the second.
  const upsideDown = (_: unknown, position: number): QueryOutcome | undefined =>
    position === 0
      ? undefined
      : {
          ok: true,
          hits: DOCUMENTS.map((document, row) => ({ row, document, score: Math.fround(row / 100) })).reverse(),
          tokens: 1,
          truncated: false,
          text: 'b',
          cut: 'nothing',
          certificate: { exact: true, rescored: null },
        };
  const app = build(t, new FakeRetriever({ documents: DOCUMENTS, outcome: upsideDown }));
  const nobody = Array.from({ length: 20 }, (_, i) => `nobody-${i}`);
  for (const fuse of ['rrf', 'max']) {
    for (const deduplicate of ['passage', 'title']) {
      const request = { queries: ['a', 'b'], k: 3, fuse, deduplicate, candidates: 5 };
      const { hits } = await ask(app, request);
      assert.ok(hits!.every(({ from }) => from!.length === 1));
      assert.deepEqual((await ask(app, { ...request, exclude: nobody })).hits, hits);
    }
  }
});

test('the least score, titles once, excerpts and whole rows', async (t) => {
  const app = build(t, new FakeRetriever({ documents: DOCUMENTS }));
  const { results } = await ask(app, {
    queries: [''],
    k: 10,
    minScore: 0.55,
    deduplicate: 'title',
    maxChars: 30,
    documents: true,
  });
  const hits = results[0]!.hits!;
  assert.deepEqual(
    hits.map(({ id }) => id),
    ['p0', 'p2'],
  );
  assert.ok(hits.every(({ text, whole }) => text.length <= 30 && !whole));
  assert.deepEqual(hits[1]!.document, JSON.parse(DOCUMENTS[2]!));
});

test('without fusion a passage comes once over the queries of a call', async (t) => {
  const app = build(t, new FakeRetriever({ documents: DOCUMENTS }));
  const { results } = await ask(app, { queries: ['', '', ''], k: 2, deduplicate: 'passage' });
  assert.deepEqual(
    results.map(({ hits }) => hits!.map(({ id }) => id)),
    [
      ['p0', 'p1'],
      ['p2', 'p3'],
      ['p4', 'p5'],
    ],
  );
});

test('with fusion one list comes of all queries, and says where each passage was found', async (t) => {
  const app = build(t, new FakeRetriever({ documents: DOCUMENTS }));
  for (const fuse of ['rrf', 'max']) {
    const answer = await ask(app, { queries: ['', ''], k: 2, fuse });
    assert.ok(answer.results.every(({ hits }) => hits === undefined));
    assert.deepEqual(
      answer.hits!.map(({ id, from }) => [id, from!.length]),
      [
        ['p0', 2],
        ['p1', 2],
      ],
    );
  }
});

test('a failing query fails alone with its code; the others are answered and fused', async (t) => {
  const failing = (code: ErrorCode) => new TrawlError(code, 'secret detail');
  const outcome = (_: unknown, i: number): QueryOutcome | undefined =>
    i === 1 ? { ok: false, error: failing('ENCODING_FAILED') } : undefined;
  const app = build(t, new FakeRetriever({ documents: DOCUMENTS, outcome }));
  const { results } = await ask(app, { queries: ['', 'bad', ''], k: 1 });
  assert.deepEqual(
    results.map(({ ok }) => ok),
    [true, false, true],
  );
  assert.equal(results[1]!.error?.code, 'ENCODING_FAILED');
  assert.doesNotMatch(results[1]!.error!.message, /secret/);
  const fused = await ask(app, { queries: ['', 'bad'], k: 1, fuse: 'max' });
  assert.equal(fused.hits!.length, 1);
});

test('a cut query says what it lost', async (t) => {
  const outcome = (): QueryOutcome => ({
    ok: true,
    hits: [],
    tokens: 256,
    truncated: true,
    text: 'query: Q [SEP] q',
    cut: 'question',
    certificate: { exact: true, rescored: null },
  });
  const retriever = new FakeRetriever({ outcome });
  const { results } = await ask(build(t, retriever), { queries: ['q'], truncate: 'question' });
  assert.deepEqual(results[0]!.embedded, { text: 'query: Q [SEP] q', tokens: 256, cut: 'question' });
  assert.equal(retriever.calls[0]?.truncate, 'question');
});

test('wrong requests are refused with the field', async (t) => {
  const app = build(t, new FakeRetriever(), { maxK: 50 });
  const cases: readonly [object, number, string, unknown[]?][] = [
    [{}, 422, 'INVALID_REQUEST', ['body', 'queries']],
    [{ queries: 'a' }, 422, 'INVALID_REQUEST', ['body', 'queries']],
    [{ queries: [1] }, 422, 'INVALID_REQUEST', ['body', 'queries', 0]],
    [{ queries: [{ question: 'a' }] }, 422, 'INVALID_REQUEST', ['body', 'queries', 0, 'query']],
    [{ queries: [{ query: 'a', text: 'b' }] }, 422, 'INVALID_REQUEST', ['body', 'queries', 0, 'text']],
    [{ queries: ['a'], topk: 3 }, 422, 'INVALID_REQUEST', ['body', 'topk']],
    [{ queries: ['a'], k: 0 }, 422, 'INVALID_REQUEST', ['body', 'k']],
    [{ queries: ['a'], k: 51 }, 422, 'K_TOO_LARGE', ['body', 'k']],
    [{ queries: ['a'], minScore: 'x' }, 422, 'INVALID_REQUEST', ['body', 'minScore']],
    [{ queries: ['a'], exclude: [null] }, 422, 'INVALID_REQUEST', ['body', 'exclude', 0]],
    [{ queries: ['a'], exclude: [1.5] }, 422, 'INVALID_REQUEST', ['body', 'exclude', 0]],
    [{ queries: ['a'], fuse: 'sum' }, 422, 'INVALID_REQUEST', ['body', 'fuse']],
    [{ queries: ['a'], truncate: 'head' }, 422, 'INVALID_REQUEST', ['body', 'truncate']],
    [{ queries: ['a'], maxChars: 5 }, 422, 'INVALID_REQUEST', ['body', 'maxChars']],
    [{ queries: ['a'], index: 'other' }, 404, 'NOT_FOUND'],
  ];
  for (const [body, status, code, loc] of cases) {
    const answer = await postTo(app, '/v1/search', body);
    assert.deepEqual([answer.status, errorOf(answer.json).code], [status, code], JSON.stringify(body));
    if (loc !== undefined) assert.deepEqual((errorOf(answer.json).detail as { loc: unknown }[])[0]?.loc, loc);
  }
  assert.deepEqual((await ask(app, { queries: [] })).results, []);
  assert.deepEqual((await ask(app, { queries: [], fuse: 'rrf', index: 'fake-sample' })).hits, []);
});

test('a passage is had by its id, whatever characters it has, and the indexes by their route', async (t) => {
  const documents = ['{"id":"a/b c?💧","text":"x"}', '{"id":"twice","text":"1"}', '{"id":"twice","text":"2"}'];
  const app = build(t, new FakeRetriever({ documents }));
  const odd = await app.inject(`/v1/passages/${encodeURIComponent('a/b c?💧')}`);
  assert.deepEqual(odd.json(), { row: 0, document: { id: 'a/b c?💧', text: 'x', contents: 'x' } });
  const twice = (await app.inject('/v1/passages/twice')).json<{ row: number; sameId: number[] }>();
  assert.deepEqual([twice.row, twice.sameId], [1, [2]]);
  const none = await app.inject('/v1/passages/none');
  assert.deepEqual([none.statusCode, errorOf(none.json()).code], [404, 'NOT_FOUND']);
  assert.equal((await app.inject({ method: 'POST', url: '/v1/passages/none' })).statusCode, 405);
  const { indexes } = (await app.inject('/v1/indexes')).json<{ indexes: Record<string, unknown>[] }>();
  assert.deepEqual([indexes.length, indexes[0]!.name, indexes[0]!.rows], [1, 'fake-sample', 3]);
});

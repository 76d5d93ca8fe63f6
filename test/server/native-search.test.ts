import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { FastifyInstance } from 'fastify';
import { type ErrorCode, TrawlError } from '../../src/base/errors.ts';
import { TimeSlice } from '../../src/base/time-slice.ts';
import type { QueryAnswer, QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import { IndexRetriever } from '../../src/search/index-retriever.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { type Deduplication, type Fusion, fuse, select } from '../../src/server/native-search/fusion.ts';
import type { RecordedRequest, RecordedSearch } from '../../src/server/recording/recorded-search.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { runs } from '../helpers/runs.ts';
import { FakeEncoder, FakeIndex, FakeStore, type Log } from '../search/fakes.ts';
import { build, errorOf, postTo } from './build.ts';

const DOCUMENTS = Array.from({ length: 30 }, (_, i) =>
  JSON.stringify({ id: `p${i}`, title: `Title ${Math.floor(i / 2)}`, text: `Passage ${i} is about bridges.` }),
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
    short?: string;
    error?: { code: string; message: string };
  }[];
  readonly hits?: Hit[];
  readonly short?: string;
  readonly timings: Record<string, number>;
}

async function ask(app: Parameters<typeof postTo>[0], body: object): Promise<Answer> {
  const { status, json, text } = await postTo(app, '/v1/search', body);
  assert.equal(status, 200, text);
  return json as Answer;
}

test('the reply has the embedded text, the certificate and the timings', async (t) => {
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
  assert.deepEqual(answer.timings, { queueMs: 2, embedMs: 1.25, searchMs: 0.5, fetchMs: 0.25, rerankMs: 0 });
  assert.equal(retriever.calls[0]?.k, 4);
  assert.equal(retriever.calls[0]?.truncate, 'tail');
  const [hit] = answer.results[0]!.hits!;
  assert.deepEqual(hit, {
    row: 0,
    id: 'p0',
    title: 'Title 0',
    score: Math.fround(0.9),
    text: '"Title 0"\nPassage 0 is about bridges.',
    whole: true,
  });
});

test('excluded passages are left out, and the list is still full', async (t) => {
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

test('if many passages have an excluded id, the list is filled from further down', async (t) => {
  const documents = Array.from({ length: 60 }, (_, i) => JSON.stringify({ id: i < 50 ? 'same' : `p${i}`, text: 'x' }));
  const retriever = new FakeRetriever({ documents });
  const { results } = await ask(build(t, retriever), { queries: [''], k: 2, exclude: ['same'] });
  assert.deepEqual(
    results[0]!.hits!.map(({ id }) => id),
    ['p50', 'p51'],
  );
  const fused = await ask(build(t, retriever), { queries: ['', 'b'], k: 2, exclude: ['same'], fuse: 'rrf' });
  assert.deepEqual(
    fused.hits!.map(({ id }) => id),
    ['p50', 'p51'],
  );
});

/** A server with a fake encoder, engine and passages: rows are ranked by distance from the number in the query. */
function buildParts(
  t: TestContext,
  documents: readonly string[],
  options: Parameters<typeof build>[2] = {},
): { app: FastifyInstance; log: Log; retriever: Retriever } {
  const log: Log = [];
  const rows = documents.length;
  const retriever = new IndexRetriever(
    { ...new FakeRetriever().info, rows, dimension: 1 },
    {
      dense: {
        encoder: new FakeEncoder(log),
        index: new FakeIndex(log, { rows, score: (query, row) => 1 - (row - query) / 1_000 }),
      },
      passages: new FakeStore(log, { rows, document: (row) => documents[row]! }),
    },
  );
  return { app: build(t, retriever, options), log, retriever };
}

test('a query that is searched several times is embedded, recorded and counted once', async (t) => {
  const documents = Array.from({ length: 400 }, (_, i) =>
    JSON.stringify({ id: i < 300 ? 'same' : `p${i}`, title: i < 350 ? 'A' : `T${i}`, text: 'x' }),
  );
  for (const [request, found] of [
    [{ k: 2, deduplicate: 'title' }, ['same', 'p350']],
    [{ k: 2, deduplicate: 'document', exclude: ['same'] }, ['p300', 'p350']],
  ] as const) {
    const recorded: [RecordedRequest, RecordedSearch][] = [];
    const record = { record: (...args: [RecordedRequest, RecordedSearch]) => void recorded.push(args) };
    const { app, log } = buildParts(t, documents, { record });
    const answer = await ask(app, { queries: ['0 q'], ...request });
    const hits = answer.hits ?? answer.results[0]!.hits!;
    assert.deepEqual(
      hits.map(({ id }) => id),
      found,
    );
    assert.deepEqual(
      log.filter((line) => line.startsWith('encode')),
      ['encode 1'],
    );
    assert.ok(log.filter((line) => line.startsWith('search')).length > 2, log.join());
    assert.equal(recorded.length, 1);
    const [of, { queries, k, outcomes }] = recorded[0]!;
    assert.deepEqual([of.dialect, of.index, queries, k], ['native', 'fake-sample', ['0 q'], 2]);
    const [outcome] = outcomes as [QueryAnswer];
    assert.deepEqual(
      outcome.hits.map(({ row }) => row),
      hits.map(({ row }) => row),
    );
    const { payload } = await app.inject('/metrics');
    const counts = ['cached', 'coalesced', 'computed'].map((what) =>
      Number(new RegExp(`^trawl_${what}_queries_total\\{.*\\} (.*)$`, 'm').exec(payload)![1]),
    );
    assert.deepEqual(counts, [0, 0, 1]);
    assert.match(payload, /^trawl_queries_total\{dialect="native"\} 1$/m);
  }
});

test('the rescored rows of a query that is searched several times are one observation', async (t) => {
  const documents = Array.from({ length: 60 }, (_, i) =>
    JSON.stringify({ id: i, title: i < 50 ? 'A' : `${i}`, text: 'x' }),
  );
  const app = build(t, new FakeRetriever({ documents }));
  const { results } = await ask(app, { queries: [''], k: 2, deduplicate: 'title' });
  assert.equal(results[0]!.certificate?.rescored, 10 + 40 + 60);
  const { payload } = await app.inject('/metrics');
  assert.match(payload, /^trawl_query_rescored_rows_count 1$/m);
  assert.match(payload, /^trawl_query_rescored_rows_sum 110$/m);
});

test('hits equal those selected and fused from the complete ranking of each query', async (t) => {
  const slice = new TimeSlice(new AbortController().signal);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ id: fc.nat(9), title: fc.nat(9) }), { minLength: 1, maxLength: 80 }),
      fc.array(fc.nat(20).map(String), { minLength: 1, maxLength: 4 }),
      fc.record({
        k: fc.integer({ min: 1, max: 5 }),
        exclude: fc.uniqueArray(fc.nat(9), { maxLength: 3 }),
        fuse: fc.constantFrom<Fusion>('none', 'rrf', 'max'),
        deduplicate: fc.constantFrom<Deduplication>('none', 'passage', 'title'),
      }),
      async (passages, queries, request) => {
        const documents = passages.map(({ id, title }) => JSON.stringify({ id, title: `T${title}`, text: 'x' }));
        const { app, retriever } = buildParts(t, documents);
        const answer = await ask(app, { queries, ...request });
        const { k, fuse: fusion, deduplicate } = request;
        const selection = { k, minScore: null, deduplicate };
        const all = await retriever.retrieve({ queries, k: documents.length });
        const isExcluded = ({ document }: { document: string }): boolean =>
          request.exclude.includes((JSON.parse(document) as { id: number }).id);
        const outcomes = all.outcomes.map((outcome) =>
          outcome.ok ? { ...outcome, hits: outcome.hits.filter((hit) => !isExcluded(hit)) } : outcome,
        );
        const rows = (hits: readonly { readonly row: number }[]): number[] => hits.map(({ row }) => row);
        if (fusion === 'none') {
          const lists = await select(outcomes, selection, { length: k, acrossLists: true }, slice);
          assert.deepEqual(
            answer.results.map(({ hits }) => rows(hits!)),
            lists.map(({ candidates }) => rows(candidates.map(({ hit }) => hit))),
          );
        } else {
          const length = Math.max(10, 2 * k);
          const lists = await select(outcomes, selection, { length, acrossLists: false }, slice);
          const fused = await fuse(lists, fusion, selection, slice);
          assert.deepEqual(rows(answer.hits!), rows(fused.map(({ best }) => best.hit)));
        }
      },
    ),
    { numRuns: runs(30, 100) },
  );
});

test('a list is full although more passages are excluded than the server goes through', async (t) => {
  const documents = Array.from({ length: 400 }, (_, i) => JSON.stringify({ id: `p${i}`, text: 'x' }));
  const { app } = buildParts(t, documents, { maxK: 20 });
  const exclude = Array.from({ length: 380 }, (_, i) => `p${i}`);
  const { results } = await ask(app, { queries: ['0'], k: 20, exclude });
  assert.deepEqual(
    results[0]!.hits!.map(({ id }) => id),
    documents.slice(380).map((_, i) => `p${380 + i}`),
  );
  assert.equal(results[0]!.short, undefined);
});

test('a list with fewer than k hits says why, and so does the header of a reply', async (t) => {
  const documents = Array.from({ length: 30 }, (_, i) =>
    JSON.stringify({ id: `p${i}`, title: i < 25 ? 'A' : `T${i}`, text: 'x' }),
  );
  const { app } = buildParts(t, documents, { maxK: 20 });
  const onlyTitleA = Array.from({ length: 14 }, (_, i) => `p${i + 10}`).concat(['p25', 'p26', 'p27', 'p28', 'p29']);
  const reasons: [object, string | undefined, string | undefined][] = [
    [{ k: 20 }, undefined, undefined],
    [{ k: 20, exclude: Array.from({ length: 15 }, (_, i) => `p${i}`) }, 'all', 'all=1'],
    [{ k: 3, minScore: 0.999 }, 'minScore', 'minScore=1'],
    [{ k: 3, deduplicate: 'title' }, 'limit', 'limit=1'],
    [{ k: 3, deduplicate: 'title', exclude: onlyTitleA }, 'duplicates', 'duplicates=1'],
  ];
  for (const [fields, short, header] of reasons) {
    const reply = await app.inject({ method: 'POST', url: '/v1/search', payload: { queries: ['0'], ...fields } });
    const [result] = (reply.json() as { results: { short?: string }[] }).results;
    assert.deepEqual([result!.short, reply.headers['x-trawl-short']], [short, header], JSON.stringify(fields));
  }
  const fused = { queries: ['0', '1'], k: 3, fuse: 'rrf' };
  assert.equal((await ask(app, { ...fused, deduplicate: 'title', candidates: 10 })).short, 'duplicates');
  assert.equal((await ask(app, { ...fused, minScore: 0.9995 })).short, 'minScore');
  assert.equal((await ask(app, fused)).short, undefined);
  const other = await app.inject({ method: 'POST', url: '/retrieve', payload: { queries: ['28', '0'], topk: 5 } });
  assert.equal(other.headers['x-trawl-short'], 'all=1');
});

test('unknown excluded ids do not change the fused list, and fusion considers as many hits as requested', async (t) => {
  // The second query ranks the rows in reverse order.
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
          vector: null,
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

test('minScore, deduplication by title, excerpts and whole rows', async (t) => {
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

test('without fusion a passage appears once in the lists of a request', async (t) => {
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

test('with fusion there is one list, whose hits name the queries that found them', async (t) => {
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

test('a failing query fails alone with its code, and the others are answered and fused', async (t) => {
  const failing = (code: ErrorCode) => new TrawlError(code, 'secret detail');
  const outcome = (_: unknown, i: number): QueryOutcome | undefined =>
    i === 1 ? { ok: false, error: failing('INTERNAL') } : undefined;
  const app = build(t, new FakeRetriever({ documents: DOCUMENTS, outcome }));
  const { results } = await ask(app, { queries: ['', 'bad', ''], k: 1 });
  assert.deepEqual(
    results.map(({ ok }) => ok),
    [true, false, true],
  );
  assert.equal(results[1]!.error?.code, 'INTERNAL');
  assert.doesNotMatch(results[1]!.error!.message, /secret/);
  const fused = await ask(app, { queries: ['', 'bad'], k: 1, fuse: 'max' });
  assert.equal(fused.hits!.length, 1);
});

test('the reply says how a query was truncated', async (t) => {
  const outcome = (): QueryOutcome => ({
    ok: true,
    hits: [],
    tokens: 256,
    truncated: true,
    text: 'query: Q [SEP] q',
    cut: 'question',
    vector: null,
    certificate: { exact: true, rescored: null },
  });
  const retriever = new FakeRetriever({ outcome });
  const { results } = await ask(build(t, retriever), { queries: ['q'], truncate: 'question' });
  assert.deepEqual(results[0]!.embedded, { text: 'query: Q [SEP] q', tokens: 256, cut: 'question' });
  assert.equal(retriever.calls[0]?.truncate, 'question');
});

test('a wrong request is refused, and the error names the field', async (t) => {
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

test('a passage is read by an id with any characters, and /v1/indexes lists the indexes', async (t) => {
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

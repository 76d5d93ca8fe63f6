import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrawlError } from '../../src/base/errors.ts';
import { IndexRetriever } from '../../src/search/index-retriever.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { FakeStore } from '../search/fakes.ts';
import { build, errorOf, postTo } from './build.ts';
import { BRIDGE, CONTENTS, type Pair, SCORES, scored, testPairs, WALKER } from './dialect-pairs.ts';

/** Searches whose hits are reranked. */
const SEARCHES: readonly Pair[] = [
  {
    what: 'Search-R1 with reranking: documents with scores',
    dialect: 'search-r1-rerank',
    body: { queries: [''], topk_retrieval: 5, topk_rerank: 2, return_scores: true },
    reply: { result: [[scored(WALKER, 0), scored(BRIDGE, 1)]] },
    k: 2,
  },
  {
    what: 'Search-R1 with reranking: without scores, three by default',
    dialect: 'search-r1-rerank',
    body: { queries: [''], topk_retrieval: 10 },
    k: 3,
  },
  {
    what: 'Search-R1 with reranking: no more passages than were reranked',
    dialect: 'search-r1-rerank',
    body: { queries: [''], topk_retrieval: 2, topk_rerank: 5 },
    k: 2,
  },
  {
    what: 'Search-R1 with reranking: null stands for all passages that were reranked, and for the depth of the server',
    dialect: 'search-r1-rerank',
    body: { queries: [''], topk_retrieval: null, topk_rerank: null },
    k: 50,
  },
  {
    what: 'Search-R1 with reranking, named: the texts of the original',
    dialect: 'search-r1-rerank-text',
    body: { queries: [''], topk_rerank: 2 },
    reply: { result: [CONTENTS.slice(0, 2)] },
    k: 2,
  },
  {
    what: 'StepSearch with reranking: texts, always with scores',
    dialect: 'stepsearch-rerank',
    body: { queries: [''], topk: 2 },
    reply: { result: [CONTENTS.slice(0, 2).map((document, i) => ({ document, score: SCORES[i] }))] },
    k: 2,
  },
  {
    what: 'StepSearch with reranking: five by default',
    dialect: 'stepsearch-rerank',
    body: { queries: [''] },
    k: 5,
  },
];
testPairs(SEARCHES);

test('the depth of a reranked search is that of the request, else of the server', async (t) => {
  const retriever = new FakeRetriever();
  const app = build(t, retriever, { rerank: { depth: 7, allowFailure: true } });
  await postTo(app, '/retrieve', { queries: ['a'], topk_rerank: 1 });
  await postTo(app, '/retrieve', { queries: ['a'], topk_retrieval: null });
  await postTo(app, '/retrieve/rerank', { queries: ['a'], topk_retrieval: 9 });
  assert.deepEqual(
    retriever.calls.map(({ rerank }) => rerank),
    [10, 7, 9].map((depth) => ({ depth, allowFailure: true })),
  );
});

test('wrong numbers of passages are refused', async (t) => {
  const app = build(t, new FakeRetriever(), { maxK: 100 });
  for (const [fields, code] of [
    [{ topk_rerank: 'x' }, 'INVALID_REQUEST'],
    [{ topk_retrieval: -1 }, 'INVALID_REQUEST'],
    [{ topk_retrieval: 101 }, 'K_TOO_LARGE'],
  ] as const) {
    const { status, json } = await postTo(app, '/retrieve', { queries: ['a'], ...fields });
    assert.deepEqual([status, errorOf(json).code], [422, code], JSON.stringify(fields));
    const { loc } = (errorOf(json).detail as { loc: unknown[] }[])[0]!;
    assert.deepEqual(loc, ['body', Object.keys(fields)[0]], 'the fault names the field of the request');
  }
});

const DOCUMENTS = ['bb', 'c', 'dd', 'aaaa'];
const USAGE = { prompt_tokens: 40, total_tokens: 40 };

const sigmoid = (x: number): number => Math.fround(1 / (1 + Math.exp(-x)));
const results = (indexes: readonly number[], document = true): object[] =>
  indexes.map((index) => ({
    index,
    relevance_score: DOCUMENTS[index]!.length,
    ...(document ? { document: { text: DOCUMENTS[index] } } : {}),
  }));
const answer = (ranked: object[], version: string): object => ({
  model: 'fake-reranker',
  results: ranked,
  usage: USAGE,
  meta: { api_version: { version } },
});

/** The score of the fake reranker is the length of a text. */
const PAIRS: readonly Pair[] = [
  {
    what: 'Search-R1’s reranker: each query has its own documents, in both forms, as texts',
    dialect: 'search-r1-reranker',
    body: {
      queries: ['a', 'b', 'c'],
      documents: [
        [{ contents: 'T\nshort' }, { document: { id: 1, contents: '"T (x)"\nlonger text' }, score: 3 }],
        [],
        [{ contents: 'no newline' }],
      ],
    },
    reply: { result: [['(Title: "T (x)") longer text', '(Title: T) short'], [], ['(Title: no newline) ']] },
  },
  {
    what: 'Search-R1’s reranker: three documents by default, with scores on request',
    dialect: 'search-r1-reranker',
    body: {
      queries: ['a'],
      documents: [DOCUMENTS.map((text) => ({ contents: `t\n${text}` }))],
      rerank_topk: 0,
      return_scores: true,
    },
    reply: {
      result: [
        ['aaaa', 'bb', 'dd'].map((text) => ({
          document: `(Title: t) ${text}`,
          score: '(Title: t) '.length + text.length,
        })),
      ],
    },
  },
  {
    what: 'TEI: all texts with the sigmoid, the later of equal scores first',
    dialect: 'tei-rerank',
    body: { query: 'a', texts: DOCUMENTS },
    reply: [3, 2, 0, 1].map((index) => ({ index, score: sigmoid(DOCUMENTS[index]!.length) })),
  },
  {
    what: 'TEI: raw scores and texts',
    dialect: 'tei-rerank',
    body: { query: 'a', texts: DOCUMENTS, raw_scores: true, return_text: true, truncate: true },
    reply: [3, 2, 0, 1].map((index) => ({ index, score: DOCUMENTS[index]!.length, text: DOCUMENTS[index] })),
  },
  {
    what: 'vLLM and Jina at /rerank: all documents with their texts',
    dialect: 'rerank',
    body: { model: 'm', query: 'a', documents: DOCUMENTS, top_n: 0, truncate_prompt_tokens: 10 },
    reply: answer(results([3, 0, 2, 1]), '2'),
  },
  {
    what: 'Cohere v1: objects ranked by several fields',
    dialect: 'rerank-v1',
    body: {
      query: 'a',
      documents: [
        { title: 'x', text: 'y', id: 7 },
        { title: 'xxxx', text: 'y' },
      ],
      rank_fields: ['title', 'text'],
      top_n: 1,
    },
    reply: {
      ...answer([{ index: 1, relevance_score: 6, document: { text: 'y', title: 'xxxx' } }], '1'),
      usage: { prompt_tokens: 20, total_tokens: 20 },
    },
  },
  {
    what: 'Cohere v2: the first, without its document',
    dialect: 'rerank-v2',
    body: { model: 'rerank-v3.5', query: 'a', documents: DOCUMENTS, top_n: 2, return_documents: false },
    reply: answer(results([3, 0], false), '2'),
  },
  {
    what: 'vLLM: one document as a text; no documents',
    dialect: 'rerank-v2',
    body: { query: 'a', documents: [], top_n: 99 },
    reply: { ...answer([], '2'), usage: { prompt_tokens: 0, total_tokens: 0 } },
  },
  {
    what: 'Infinity, named: documents as texts and the sigmoid',
    dialect: 'infinity-rerank',
    body: { query: 'a', documents: DOCUMENTS, top_n: 1, return_documents: true },
    reply: {
      object: 'rerank',
      results: [{ relevance_score: sigmoid(4), index: 3, document: 'aaaa' }],
      model: 'fake-reranker',
      usage: USAGE,
    },
  },
  {
    what: 'SGLang, named: a bare list',
    dialect: 'sglang-rerank',
    body: { query: 'a', documents: DOCUMENTS, top_n: 2 },
    reply: [3, 0].map((index) => ({
      score: DOCUMENTS[index]!.length,
      document: DOCUMENTS[index],
      index,
      meta_info: {},
    })),
  },
];

/** Without `id` and `created`, which differ from reply to reply. */
function stable(text: string): unknown {
  return JSON.parse(
    text
      .replace(/"id":"[-0-9a-f]{36}",?/, '')
      .replace(/,"created":\d+/, '')
      .replace(',}', '}'),
  );
}

testPairs(PAIRS, stable);

test('Search-R1’s reranker returns as many documents as --topk says, unless the request has its own number', async (t) => {
  const app = build(t, new FakeRetriever(), { topk: 2 });
  const body = { queries: ['a'], documents: [['x', 'xx', 'xxx'].map((contents) => ({ contents }))] };
  const lengths = async (more: object): Promise<number> =>
    ((await postTo(app, '/rerank', { ...body, ...more })).json as { result: unknown[][] }).result[0]!.length;
  assert.deepEqual(
    [await lengths({}), await lengths({ rerank_topk: 0 }), await lengths({ rerank_topk: 3 })],
    [2, 2, 3],
  );
});

test('raw scores are asked of the reranker only where the request or its project has them', async (t) => {
  const retriever = new FakeRetriever();
  const app = build(t, retriever);
  await postTo(app, '/rerank', { query: 'a', texts: ['b'] });
  await postTo(app, '/rerank', { query: 'a', documents: 'b' });
  await postTo(app, '/rerank', { query: 'a', documents: ['b'], use_activation: false });
  await postTo(app, '/rerank', { queries: ['a'], documents: [[{ contents: 'b' }]] });
  assert.deepEqual(
    retriever.rerankCalls.map(({ raw }) => raw),
    [true, false, true, false],
  );
});

test('a server without a reranker answers each of these requests with 501, and TEI’s with its own format', async (t) => {
  const { info } = new FakeRetriever();
  const retriever = new IndexRetriever({ ...info, reranker: null }, { passages: new FakeStore([]) });
  t.after(() => retriever.close());
  const app = build(t, retriever);
  for (const [path, body, status] of [
    ['/retrieve', { queries: ['a'], topk_rerank: 1 }, 501],
    ['/retrieve/rerank', { queries: ['a'] }, 501],
    ['/rerank', { queries: ['a'], documents: [[{ contents: 'b' }]] }, 501],
    ['/v1/rerank', { query: 'a', documents: ['b'] }, 501],
    ['/rerank', { query: 'a', texts: ['b'] }, 424],
  ] as const) {
    const reply = await postTo(app, path, body);
    assert.equal(reply.status, status, path);
    assert.match(reply.text, /--rerank MODEL/);
    if (status === 424) assert.equal((reply.json as { error_type: string }).error_type, 'Backend');
  }
});

test('a failure of the reranker fails the request', async (t) => {
  const retriever = new FakeRetriever();
  const error = new TrawlError('RERANK_FAILED', 'private');
  Object.assign(retriever, {
    rerank: async () => ({
      outcomes: [{ ok: false, error }],
      timings: { queue: 0, embed: 0, search: 0, fetch: 0, rerank: 0 },
    }),
  });
  const app = build(t, retriever);
  const tei = await postTo(app, '/rerank', { query: 'a', texts: ['b'] });
  assert.deepEqual(
    [tei.status, (tei.json as { error: string }).error],
    [503, "The server's reranker did not answer, or gave an unusable answer. Send the request again."],
  );
  assert.equal((await postTo(app, '/v2/rerank', { query: 'a', documents: ['b'] })).status, 503);
  const none = await postTo(app, '/rerank', { query: 'a', texts: [] });
  assert.deepEqual([none.status, (none.json as { error_type: string }).error_type], [422, 'Validation']);
});

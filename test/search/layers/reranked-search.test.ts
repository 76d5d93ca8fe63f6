import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TrawlError } from '../../../src/base/errors.ts';
import { DEFAULT_MAX_RERANK_TOKENS } from '../../../src/encoder/rerank/pair-budget.ts';
import { documentFields } from '../../../src/index/passages/document-fields.ts';
import type { Hit, QueryOutcome } from '../../../src/search/calls/query-outcome.ts';
import type { RetrieveCall } from '../../../src/search/calls/retrieve-call.ts';
import { AnswerCache } from '../../../src/search/layers/answer-cache.ts';
import { RerankedSearch } from '../../../src/search/layers/reranked-search.ts';
import { SharedSearch } from '../../../src/search/layers/shared-search.ts';
import type { Retriever, Search } from '../../../src/search/retriever.ts';
import { FakeReranker, type FakeRerankerOptions } from '../../helpers/fake-reranker.ts';
import { FakeRetriever, untilAborted } from '../../helpers/fake-retriever.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const ROWS = 12;
const documents = Array.from({ length: ROWS }, (_, row) =>
  JSON.stringify({ id: `p${row}`, contents: `passage ${row}` }),
);

const FAILURE = new TrawlError('RERANK_FAILED', 'The reranker failed.');

function reranking(
  options: FakeRerankerOptions = {},
  inner: Retriever = new FakeRetriever({ documents }),
): { retriever: RerankedSearch; reranker: FakeReranker } {
  const reranker = new FakeReranker(options);
  return { retriever: new RerankedSearch(inner, inner.info, reranker, DEFAULT_MAX_RERANK_TOKENS), reranker };
}

async function hitsOf(retriever: Search, call: RetrieveCall, query = 0): Promise<readonly Hit[]> {
  const outcome = (await retriever.retrieve(call)).outcomes[query]!;
  assert.ok(outcome.ok);
  return outcome.hits;
}

test('hits are ordered by the score of the reranker, equal scores by their rank in the search', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: -3, max: 3 }), { minLength: ROWS, maxLength: ROWS }),
      fc.integer({ min: 1, max: ROWS + 2 }),
      fc.integer({ min: 1, max: ROWS + 2 }),
      fc.array(fc.string(), { minLength: 1, maxLength: 3 }),
      async (scoreOfRow, k, depth, queries) => {
        const score = (_query: string, passage: string): number => scoreOfRow[Number(passage.split(' ')[1])]!;
        const { retriever } = reranking({ score });
        const found = new FakeRetriever({ documents });
        const { outcomes } = await retriever.retrieve({ queries, k, rerank: { depth } });
        for (const [q, outcome] of outcomes.entries()) {
          assert.ok(outcome.ok);
          const first = await hitsOf(found, { queries, k: Math.max(k, depth) }, q);
          const expected = first
            .map((hit, i) => ({ ...hit, score: scoreOfRow[hit.row]!, firstStage: { rank: i + 1, score: hit.score } }))
            .sort((a, b) => b.score - a.score || a.firstStage.rank - b.firstStage.rank)
            .slice(0, k);
          assert.deepEqual(outcome.hits, expected);
          assert.deepEqual(outcome.rerank, { ok: true, model: 'fake-reranker', passages: first.length, truncated: 0 });
        }
      },
    ),
    { numRuns: 100 },
  );
});

test('the reranker reads the contents of a passage, and the question before the query', async () => {
  const inner = new FakeRetriever({ documents: ['{"id":1,"title":"Title","text":"Text.","other":"Not read."}'] });
  const { retriever, reranker } = reranking({}, inner);
  const queries = ['plain', { question: 'Who?', query: 'designer' }, { question: ' ', query: 'blank question' }];
  await retriever.retrieve({ queries, k: 1, rerank: { depth: 1 } });
  assert.deepEqual(
    reranker.calls[0]!.map(({ query, passages }) => [query, ...passages]),
    ['plain', 'Who? designer', 'blank question'].map((query) => [query, '"Title"\nText.']),
  );
  assert.equal(documentFields(documents[0]!).contents, 'passage 0');
});

test('the reranker reads the parts of a query that the template has', async () => {
  const { retriever, reranker } = reranking({}, new FakeRetriever());
  const queries = [{ question: 'Who?', history: ['bridge'], query: 'designer' }];
  await retriever.retrieve({ queries, k: 1, rerank: { depth: 1 } });
  await retriever.retrieve({ queries, k: 1, rerank: { depth: 1 }, template: 'question-history-query' });
  assert.deepEqual(
    reranker.calls.map(([list]) => list!.query),
    ['Who? designer', 'Who? bridge designer'],
  );
});

test('a call without reranking passes through', async () => {
  const { retriever, reranker } = reranking();
  assert.equal((await hitsOf(retriever, { queries: ['a'], k: 3 }))[0]!.firstStage, undefined);
  assert.equal(reranker.calls.length, 0);
});

test('a call without hits to score asks the reranker for nothing that it could fail on', async () => {
  const empty = new FakeRetriever({ documents: [] });
  const { retriever } = reranking({}, empty);
  assert.deepEqual(await hitsOf(retriever, { queries: ['a'], k: 3, rerank: { depth: 5 } }), []);
  const { outcomes } = await retriever.retrieve({ queries: [], k: 3, rerank: { depth: 5 } });
  assert.deepEqual(outcomes, []);
});

test('a query whose search failed is not scored, and keeps its error', async () => {
  const error = new TrawlError('ENCODING_FAILED', 'no vector');
  const outcome = (_input: unknown, i: number): QueryOutcome | undefined =>
    i === 0 ? { ok: false, error } : undefined;
  const { retriever, reranker } = reranking({}, new FakeRetriever({ documents, outcome }));
  const { outcomes } = await retriever.retrieve({ queries: ['a', 'b'], k: 2, rerank: { depth: 4 } });
  assert.deepEqual(outcomes[0], { ok: false, error });
  assert.deepEqual(
    reranker.calls[0]!.map(({ query }) => query),
    ['b'],
  );
  assert.ok(outcomes[1]!.ok && outcomes[1]!.rerank?.ok === true);
});

test('a failure of the reranker fails its query only, unless the call allows it', async () => {
  const { retriever } = reranking({ fail: (query) => (query === 'bad' ? FAILURE : undefined) });
  const call = { queries: ['good', 'bad'], k: 2, rerank: { depth: 6 } };
  const refused = await retriever.retrieve(call);
  assert.ok(refused.outcomes[0]!.ok);
  assert.deepEqual(refused.outcomes[1], { ok: false, error: FAILURE });
  const allowed = await retriever.retrieve({ ...call, rerank: { depth: 6, allowFailure: true } });
  const [good, bad] = allowed.outcomes;
  assert.ok(good!.ok && good!.rerank?.ok === true);
  assert.ok(bad?.ok);
  assert.deepEqual(bad.rerank, { ok: false, error: FAILURE });
  assert.deepEqual(bad.hits, await hitsOf(new FakeRetriever({ documents }), { queries: ['bad'], k: 2 }));
  assert.deepEqual(retriever.load, {
    waitingPairs: 0,
    expectedWaitMs: 7,
    lists: 4,
    failedLists: 2,
    pairs: 12,
    truncatedPairs: 0,
  });
});

test('an answer without reranking is not cached, and not shared with calls that do not allow it', async () => {
  let broken = true;
  const { retriever } = reranking({ fail: () => (broken ? FAILURE : undefined) });
  const sharing = new SharedSearch(retriever, new FakeRetriever().info, {
    answerCache: new AnswerCache(1_000_000),
    singleFlight: true,
  });
  const call = { queries: ['a'], k: 2, rerank: { depth: 6, allowFailure: true } };
  const [allowing, refusing] = await Promise.all([
    sharing.retrieve(call),
    sharing.retrieve({ ...call, rerank: { depth: 6 } }),
  ]);
  assert.ok(allowing.outcomes[0]?.ok === true && !refusing.outcomes[0]!.ok);
  assert.equal(sharing.hasAnswers(call), false);
  broken = false;
  const later = await sharing.retrieve(call);
  const [answer] = later.outcomes;
  assert.ok(answer?.ok && answer.rerank?.ok === true);
  assert.equal(sharing.hasAnswers(call), true);
});

test('cached answers are those of the same depth: a smaller k is read from them, a larger one than the depth is searched', async () => {
  const { retriever, reranker } = reranking();
  const sharing = new SharedSearch(retriever, new FakeRetriever().info, {
    answerCache: new AnswerCache(1_000_000),
    singleFlight: true,
  });
  const at = (k: number, depth: number) => ({ queries: ['a'], k, rerank: { depth } });
  const long = await hitsOf(sharing, at(5, 8));
  assert.deepEqual(await hitsOf(sharing, at(3, 8)), long.slice(0, 3));
  assert.equal(reranker.calls.length, 1);
  for (const other of [at(3, 6), at(9, 8), { queries: ['a'], k: 3 }]) {
    assert.equal(sharing.hasAnswers(other), false);
    assert.deepEqual(await hitsOf(sharing, other), await hitsOf(reranking().retriever, other));
  }
});

test('the reranker that a call names must be the served one', async () => {
  const { retriever } = reranking();
  const call = { queries: ['a'], k: 1 };
  assert.equal((await hitsOf(retriever, { ...call, rerank: { depth: 2, model: 'fake-reranker' } })).length, 1);
  await assert.rejects(
    retriever.retrieve({ ...call, rerank: { depth: 2, model: 'other' } }),
    trawlError('NOT_SUPPORTED', /"other" is not served. Use "fake-reranker"/),
  );
});

test('a call whose pairs have too many tokens is refused before the reranker reads them', async () => {
  const reranker = new FakeReranker();
  const retriever = new RerankedSearch(new FakeRetriever({ documents }), new FakeRetriever().info, reranker, 100);
  await assert.rejects(
    retriever.retrieve({ queries: ['a', 'b'], k: 1, rerank: { depth: 12, allowFailure: true } }),
    trawlError('RERANK_TOO_LARGE', /24 pairs .* about \d+ tokens; the limit is 100 tokens/),
  );
  await assert.rejects(
    retriever.rerank({ lists: [{ query: 'a', passages: documents }] }),
    trawlError('RERANK_TOO_LARGE'),
  );
  assert.equal(reranker.calls.length, 0);
});

test('texts of the caller are scored in their order', async () => {
  const { retriever } = reranking();
  const lists = [
    { query: 'a', passages: ['xxx', 'x'] },
    { query: 'b', passages: [] },
  ];
  const { outcomes, timings } = await retriever.rerank({ lists });
  assert.deepEqual(
    outcomes.map((outcome) => outcome.ok && [...outcome.scores]),
    [[3, 1], []],
  );
  assert.ok(timings.rerank >= 0 && timings.search === 0);
});

test('the time of reranking is a stage of its own, and waiting for the reranker counts as queue', async () => {
  const waiting = {
    outcomes: [{ ok: true as const, scores: new Float32Array(1), tokens: 1, truncated: 0 }],
    waitedMs: 50,
  };
  const reranker = Object.assign(new FakeReranker(), { score: async () => waiting });
  const retriever = new RerankedSearch(
    new FakeRetriever({ documents }),
    new FakeRetriever().info,
    reranker,
    DEFAULT_MAX_RERANK_TOKENS,
  );
  const { timings } = await retriever.rerank({ lists: [{ query: 'a', passages: ['b'] }] });
  assert.equal(timings.queue, 50);
  assert.ok(timings.rerank + timings.queue >= 0);
});

test('an aborted call is cancelled in the search and in the reranker', async () => {
  for (const inner of [new FakeRetriever({ documents, before: untilAborted }), new FakeRetriever({ documents })]) {
    const cancelled = new AbortController();
    const { retriever, reranker } = reranking(
      {
        before: ({ signal }) =>
          new Promise((_resolve, reject) => {
            signal!.addEventListener('abort', () => reject(new TrawlError('CANCELLED', 'cancelled')));
          }),
      },
      inner,
    );
    const call = { queries: ['a'], k: 1, rerank: { depth: 2, allowFailure: true }, signal: cancelled.signal };
    const result = retriever.retrieve(call);
    setImmediate(() => cancelled.abort());
    await assert.rejects(result, trawlError('CANCELLED'));
    assert.equal(retriever.load.waitingPairs, 0);
    assert.ok(reranker.calls.length <= 1);
  }
});

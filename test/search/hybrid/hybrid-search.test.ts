import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { removePassages } from '../../../indexer/update/remove-passages.ts';
import { withoutOverflows } from '../../../src/engine/vectors/search-checks.ts';
import type { SearchRequest, VectorIndex } from '../../../src/engine/vectors/vector-index.ts';
import type { Hit, QueryAnswer, QueryOutcome } from '../../../src/search/calls/query-outcome.ts';
import type { RetrieveCall } from '../../../src/search/calls/retrieve-call.ts';
import { retrieveDeepening } from '../../../src/search/deepening.ts';
import { DenseSearch } from '../../../src/search/dense/dense-search.ts';
import { retrieveHybrid } from '../../../src/search/hybrid/hybrid-search.ts';
import { type HybridOptions, hybridSettings } from '../../../src/search/hybrid/hybrid-settings.ts';
import { AnswerCache } from '../../../src/search/layers/answer-cache.ts';
import type { LexicalSearch } from '../../../src/search/lexical/lexical-search.ts';
import type { OpenRetriever } from '../../../src/search/retriever.ts';
import { Stopwatch } from '../../../src/search/timings.ts';
import { runs } from '../../helpers/runs.ts';
import { standardDeviation } from '../../helpers/standard-deviation.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { FakeTextEncoder } from '../../indexer/fake-text-encoder.ts';
import { skip } from '../../indexer/updated-index.ts';
import { FakeEncoder, FakeIndex, FakeStore } from '../fakes.ts';
import { hybridIndex, openHybrid, somePassages } from './hybrid-index.ts';

const QUERIES = ['w0', 'w1 w2 w3', 'w5 w5 w9 unknown', 'w20 w30', 'w38 w2', 'nothing of these', ''];

function answers(outcomes: readonly QueryOutcome[]): QueryAnswer[] {
  return outcomes.map((outcome) => {
    assert.ok(outcome.ok, outcome.ok ? '' : outcome.error.message);
    return outcome;
  });
}

async function hybridHits(
  retriever: OpenRetriever,
  k: number,
  options: HybridOptions = {},
  more: Partial<RetrieveCall> = {},
): Promise<(readonly Hit[])[]> {
  const call = { queries: QUERIES, k, mode: 'hybrid', hybrid: hybridSettings(options, k), ...more } as const;
  return answers((await retriever.retrieve(call)).outcomes).map(({ hits }) => hits);
}

/** The fusion of the hits that dense and BM25 search report, row by row. */
async function naiveHits(retriever: OpenRetriever, k: number, options: HybridOptions, bm25?: RetrieveCall['bm25']) {
  const { fusion, rrfK, denseWeight, bm25Weight, depth } = hybridSettings(options, k);
  const listsOf = async (mode: 'dense' | 'bm25'): Promise<(readonly Hit[])[]> => {
    const call = { queries: QUERIES, k: depth, mode, bm25 };
    return answers((await retriever.retrieve(call)).outcomes).map(({ hits }) => hits);
  };
  const [dense, words] = [await listsOf('dense'), await listsOf('bm25')];
  return QUERIES.map((_, q) => {
    const sides = [
      { hits: dense[q]!, weight: denseWeight, others: [] },
      { hits: words[q]!, weight: bm25Weight, others: words[q]!.length < depth ? [0] : [] },
    ];
    const all = new Map(sides.flatMap(({ hits }) => hits.map((hit) => [hit.row, hit.document] as const)));
    return [...all]
      .map(([row, document]): Hit => {
        const places = sides.map(({ hits }) => {
          const at = hits.findIndex((hit) => hit.row === row);
          return at < 0 ? null : { rank: at + 1, score: hits[at]!.score };
        });
        const [a, b] = sides.map(({ hits, weight, others }, side) => {
          const place = places[side]!;
          if (place === null) return 0;
          if (fusion === 'rrf') return weight / (rrfK + place.rank);
          const scores = [...hits.map(({ score }) => score), ...others];
          const floor = scores.at(-1)!;
          return weight * (scores[0] === floor ? 1 : (place.score - floor) / standardDeviation(scores));
        });
        return { row, score: Math.fround(a! + b!), document, places: { dense: places[0]!, bm25: places[1]! } };
      })
      .sort((x, y) => y.score - x.score || x.row - y.row)
      .slice(0, k);
  });
}

const OPTIONS: fc.Arbitrary<HybridOptions> = fc.record(
  {
    fusion: fc.constantFrom('rrf' as const, 'weighted' as const),
    rrfK: fc.constantFrom(0, 60),
    denseWeight: fc.constantFrom(0, 0.3, 1),
    bm25Weight: fc.constantFrom(0.5, 1),
    depth: fc.constantFrom(1, 3, 20, 150, 1_000),
  },
  { requiredKeys: [] },
);

async function withDeletions(t: TestContext, passages: readonly { id: string }[], more: object = {}): Promise<string> {
  const out = await hybridIndex(t, passages, more);
  const ids = passages.filter((_, i) => i % 5 === 2).map(({ id }) => id);
  await removePassages(out, ids);
  return out;
}

test('hits are those of a naive fusion of the two exact lists, with all engines, also after deletions', {
  skip,
}, async (t) => {
  const folders = [
    await hybridIndex(t, somePassages(150)),
    await withDeletions(t, somePassages(150), { shardRows: 40 }),
  ];
  for (const folder of folders) {
    for (const reference of [false, true]) {
      const retriever = await openHybrid(t, folder, { reference });
      const more = fc.constantFrom({}, { bm25: { k1: 2, b: 0.1, k1Factor: false } });
      await fc.assert(
        fc.asyncProperty(OPTIONS, fc.constantFrom(1, 2, 10, 400), more, async (options, k, call) => {
          const expected = await naiveHits(retriever, k, options, call.bm25);
          assert.deepEqual(await hybridHits(retriever, k, options, call), expected);
        }),
        { numRuns: runs(10, 30) },
      );
    }
  }
});

test('the bits do not depend on shards, threads and the other queries of the batch', { skip }, async (t) => {
  const one = await openHybrid(t, await hybridIndex(t, somePassages(300)));
  const many = await openHybrid(t, await hybridIndex(t, somePassages(300), { shardRows: 50 }), { threads: 4 });
  for (const fusion of ['rrf', 'weighted'] as const) {
    const expected = await hybridHits(one, 20, { fusion });
    const tied = expected.some((hits) => hits.some(({ score }, i) => i > 0 && score === hits[i - 1]!.score));
    assert.equal(tied, fusion === 'weighted', 'equal passages have equal scores, but other ranks');
    assert.deepEqual(await hybridHits(many, 20, { fusion }), expected);
    const queries = [...QUERIES].reverse();
    const [reversed, alone] = await Promise.all([
      hybridHits(many, 20, { fusion }, { queries }),
      Promise.all(QUERIES.map(async (query) => (await hybridHits(many, 20, { fusion }, { queries: [query] }))[0]!)),
    ]);
    assert.deepEqual(reversed.reverse(), expected);
    assert.deepEqual(alone, expected);
  }
});

test('only the k fused passages are read, and the certificate names the depth of the lists', { skip }, async (t) => {
  const retriever = await openHybrid(t, await hybridIndex(t, somePassages(120)));
  const call = { queries: ['w1 w2'], mode: 'hybrid' } as const;
  const [usual] = answers((await retriever.retrieve({ ...call, k: 3 })).outcomes);
  assert.deepEqual([usual!.hits.length, usual!.certificate.exact, usual!.certificate.depth], [3, true, 120]);
  assert.equal(usual!.text, 'w1 w2');
  assert.equal(usual!.vector!.length, 8);
  const [whole] = answers((await retriever.retrieve({ ...call, k: 500, hybrid: hybridSettings({}, 500) })).outcomes);
  assert.deepEqual([whole!.hits.length, whole!.certificate.depth], [120, 120]);
  const shallow = { ...call, k: 500, hybrid: hybridSettings({ depth: 4 }, 500) };
  const [few] = answers((await retriever.retrieve(shallow)).outcomes);
  assert.ok(few!.hits.length >= 4 && few!.hits.length <= 8, 'the fused list has the rows of the two lists alone');
});

test('a query that cannot be embedded fails alone', { skip }, async (t) => {
  const encoder = new FakeTextEncoder({ failing: (text) => text.startsWith('bad') });
  const retriever = await openHybrid(t, await hybridIndex(t, somePassages(60)), { encoder });
  const expected = await hybridHits(retriever, 5, {}, { queries: ['w1', 'w2'] });
  const { outcomes } = await retriever.retrieve({ queries: ['bad w0', 'w1', 'bad', 'w2'], k: 5, mode: 'hybrid' });
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.ok ? outcome.hits : outcome.error.code)),
    ['ENCODING_FAILED', expected[0], 'ENCODING_FAILED', expected[1]],
  );
});

test('a query with scores beyond float32 is named by its position in the call, also in a later group', async () => {
  const index = new FakeIndex([], { score: (query) => (query === 2 ? 1e39 : query) });
  const engine = {
    ...index,
    search: async (request: SearchRequest) => withoutOverflows(await index.search({ ...request, k: 1 })),
  } as unknown as VectorIndex;
  const lexical = {
    queryText: String,
    count: () => undefined,
    search: async (texts: readonly string[]) => ({
      counts: new Uint32Array(texts.length),
      rows: new Float64Array(texts.length),
      scores: new Float32Array(texts.length),
    }),
  } as unknown as LexicalSearch;
  const parts = {
    dense: new DenseSearch({ encoder: new FakeEncoder([]), index: engine }, null),
    lexical,
    passages: new FakeStore([]),
    // Lists of this length make two groups of these queries.
    rows: 2 ** 19,
  };
  const hybrid = hybridSettings({ depth: 2 ** 19 }, 1);
  const call = {
    queries: ['0', '1', '0', '2'],
    k: 1,
    mode: 'hybrid',
    hybrid,
    rows: undefined,
    excluded: new Set<number>(),
  } as const;
  const outcomes = await retrieveHybrid(call, parts, new Stopwatch());
  const errors = outcomes.map((outcome) => (outcome.ok ? 'ok' : outcome.error.message));
  assert.deepEqual(errors.slice(0, 3), ['ok', 'ok', 'ok']);
  assert.match(errors[3]!, /^The score of query 3 and row 2 /);
});

test('a cancelled call and a failing encoder reject, whatever the search by words does', { skip }, async (t) => {
  const folder = await hybridIndex(t, somePassages(60));
  const controller = new AbortController();
  const encoder = new FakeTextEncoder({
    before(_inputs, { signal }) {
      if (signal === undefined) throw new Error('the encoder is gone');
      controller.abort();
    },
  });
  const retriever = await openHybrid(t, folder, { encoder });
  const call = { queries: QUERIES, k: 5, mode: 'hybrid' } as const;
  await assert.rejects(retriever.retrieve({ ...call, signal: controller.signal }), trawlError('CANCELLED'));
  await assert.rejects(retriever.retrieve(call), /the encoder is gone/);
});

test('a search continues with a larger k without another embedding, and its list grows at the end', {
  skip,
}, async (t) => {
  const encoder = new FakeTextEncoder();
  const retriever = await openHybrid(t, await hybridIndex(t, somePassages(200)), { encoder });
  const hybrid = hybridSettings({ depth: 60 }, 5);
  const seen: number[][] = [];
  const { outcomes } = await retrieveDeepening(
    retriever,
    { queries: ['w1 w2'], k: 5, mode: 'hybrid', hybrid },
    {
      maxK: 1_000,
      async needMore(found) {
        seen.push(answers(found)[0]!.hits.map(({ row }) => row));
        return [0];
      },
    },
  );
  const [answer] = answers(outcomes);
  assert.equal(encoder.texts.length, 1);
  assert.ok(seen.length > 2);
  for (const rows of seen) assert.deepEqual(rows, seen.at(-1)!.slice(0, rows.length));
  assert.ok(answer!.hits.length >= 60 && answer!.hits.length <= 120);
  assert.equal(answer!.certificate.depth, 60);
});

test('answers are shared and cached apart by settings, and serve fewer hits', { skip }, async (t) => {
  const answerCache = new AnswerCache(1e7);
  const retriever = await openHybrid(t, await hybridIndex(t, somePassages(200)), { answerCache });
  const variants: HybridOptions[] = [
    {},
    { fusion: 'rrf' },
    { fusion: 'rrf', rrfK: 1 },
    { denseWeight: 0.1 },
    { bm25Weight: 0.1 },
    { depth: 5 },
    { denseWeight: 0.9 },
  ];
  const calls = (): Promise<(readonly Hit[])[][]> =>
    Promise.all(variants.map((options) => hybridHits(retriever, 10, options)));
  const first = await calls();
  assert.equal(new Set(first.map((lists) => JSON.stringify(lists))).size, variants.length);
  const computed = retriever.statistics().sharing.computed;
  assert.deepEqual(await calls(), first);
  const three = await hybridHits(retriever, 3);
  assert.deepEqual(
    three,
    first[0]!.map((hits) => hits.slice(0, 3)),
  );
  assert.equal(retriever.statistics().sharing.computed, computed, 'the rest came from the cache');
});

test('settings out of range are refused, and a hybrid call holds the bytes of its lists', { skip }, async (t) => {
  const retriever = await openHybrid(t, await hybridIndex(t, somePassages(30)));
  const hybrid = { ...hybridSettings({}, 1), depth: 0 };
  await assert.rejects(
    retriever.retrieve({ queries: ['w1'], k: 1, mode: 'hybrid', hybrid }),
    trawlError('INVALID_REQUEST', /hybrid\.depth is 0/),
  );
  const bytes = (call: Partial<RetrieveCall>): number => {
    const before = retriever.statistics().waiting.bytes;
    void retriever.retrieve({ queries: ['w1'], k: 1, ...call });
    return retriever.statistics().waiting.bytes - before;
  };
  const deep = hybridSettings({ depth: 1_000 }, 1);
  assert.ok(bytes({ mode: 'hybrid', hybrid: deep }) >= bytes({ mode: 'dense' }) + 32_000);
});

test('hybrid and BM25 hits without documents have the same rows, scores and places', { skip }, async (t) => {
  const retriever = await openHybrid(t, await hybridIndex(t, somePassages(40)));
  for (const mode of ['hybrid', 'bm25'] as const) {
    const call = { queries: QUERIES, k: 5, mode };
    const [whole, bare] = [await retriever.retrieve(call), await retriever.retrieve({ ...call, documents: false })];
    assert.deepEqual(
      answers(bare.outcomes).map(({ hits }) => hits),
      answers(whole.outcomes).map(({ hits }) => hits.map((hit) => ({ ...hit, document: '' }))),
    );
  }
});

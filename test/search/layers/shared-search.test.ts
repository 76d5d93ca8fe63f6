import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrawlError } from '../../../src/base/errors.ts';
import type { EncoderInput } from '../../../src/encoder/text-encoder.ts';
import { DEFAULT_BM25 } from '../../../src/engine/lexical/bm25.ts';
import type { QueryOutcome } from '../../../src/search/calls/query-outcome.ts';
import { inputOf, type RetrieveCall } from '../../../src/search/calls/retrieve-call.ts';
import { hybridSettings } from '../../../src/search/hybrid/hybrid-settings.ts';
import { AnswerCache } from '../../../src/search/layers/answer-cache.ts';
import { SharedSearch } from '../../../src/search/layers/shared-search.ts';
import { FakeRetriever, type FakeRetrieverOptions } from '../../helpers/fake-retriever.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { pendingCallbacks } from '../held-index.ts';

const MIB = 1024 * 1024;

interface Parts {
  readonly inner: FakeRetriever;
  readonly shared: SharedSearch;
  /** Lets the inner retriever answer its waiting calls. */
  release(): void;
  /** Texts that the inner retriever got, call by call. */
  asked(): EncoderInput[][];
}

/** `hold`: the inner retriever answers only when released; a cancelled call rejects. */
function share(
  options: { answerCache?: AnswerCache; singleFlight?: boolean; hold?: boolean; fake?: FakeRetrieverOptions } = {},
): Parts {
  const waiting = new Set<() => void>();
  const { hold = false, fake = {}, ...sharing } = options;
  const before = (call: RetrieveCall): Promise<void> =>
    new Promise((resolve, reject) => {
      waiting.add(resolve);
      call.signal?.addEventListener('abort', () => reject(new TrawlError('CANCELLED', 'left')));
    });
  const inner = new FakeRetriever({ ...(hold ? { before } : {}), ...fake });
  return {
    inner,
    shared: new SharedSearch(inner, inner.info, { singleFlight: true, ...sharing }),
    release() {
      for (const resolve of waiting) resolve();
      waiting.clear();
    },
    asked: () => inner.calls.map((call) => call.queries.map(inputOf)),
  };
}

function rowsOf(outcomes: readonly QueryOutcome[]): number[][] {
  return outcomes.map((outcome) => (outcome.ok ? outcome.hits.map(({ row }) => row) : []));
}

test('equal queries in flight are computed once, over all calls, and get the same answer', async () => {
  const { shared, release, asked } = share({ hold: true });
  const calls = [['a', 'b'], ['b'], ['a', 'c', 'b'], ['c']].map((queries) => shared.retrieve({ queries, k: 3 }));
  await pendingCallbacks();
  assert.deepEqual(asked(), [['a', 'b'], ['c']]);
  release();
  const results = await Promise.all(calls);
  const [a, b, c] = rowsOf((await new FakeRetriever().retrieve({ queries: ['a', 'b', 'c'], k: 3 })).outcomes);
  assert.deepEqual(
    results.map(({ outcomes }) => rowsOf(outcomes)),
    [[a, b], [b], [a, c, b], [c]],
  );
  const { queries, coalesced, computed, cached } = shared.load;
  assert.deepEqual([queries, computed, coalesced, cached], [7, 3, 4, 0]);
});

test('without single flight each query is computed', async () => {
  const { shared, release, asked } = share({ hold: true, singleFlight: false });
  const calls = [['a', 'a'], ['a']].map((queries) => shared.retrieve({ queries, k: 1 }));
  await pendingCallbacks();
  assert.deepEqual(asked(), [['a', 'a'], ['a']]);
  release();
  await Promise.all(calls);
  assert.equal(shared.load.computed, 3);
});

test('equal queries of one call are computed once, and each place gets its answer', async () => {
  const { shared, asked } = share();
  const { outcomes } = await shared.retrieve({ queries: ['a', 'b', 'a', 'a', 'b'], k: 2 });
  assert.deepEqual(asked(), [['a', 'b']]);
  const direct = await new FakeRetriever().retrieve({ queries: ['a', 'b', 'a', 'a', 'b'], k: 2 });
  assert.deepEqual(outcomes, direct.outcomes);
});

test('queries that may be embedded differently are not equal', async () => {
  const { shared, release, asked } = share({ hold: true });
  const inputs: { query: EncoderInput; truncate?: 'tail' | 'question' }[] = [
    { query: 'a [SEP] b' },
    { query: { question: 'a', query: 'b' } },
    { query: { question: 'a', query: 'b' }, truncate: 'question' },
    { query: { question: 'ab', query: '' } },
    { query: { question: '', query: 'ab' } },
    { query: 'ab ' },
  ];
  const calls = inputs.map(({ query, truncate }) => shared.retrieve({ queries: [query], k: 1, truncate }));
  await pendingCallbacks();
  assert.equal(asked().length, inputs.length);
  // A blank question counts as none, and both truncations cut a plain text at its end.
  const same = [
    shared.retrieve({ queries: ['ab'], k: 1 }),
    shared.retrieve({ queries: ['ab'], k: 1, truncate: 'question' }),
  ];
  await pendingCallbacks();
  assert.equal(asked().length, inputs.length);
  release();
  await Promise.all([...calls, ...same]);
});

test('queries with other history are equal if the template leaves it out', async () => {
  const { shared, release, asked } = share({ hold: true });
  const inputs: EncoderInput[] = [
    { question: 'a', query: 'c', history: ['b'] },
    { question: 'a', query: 'c', history: ['b', 'b'] },
    { question: 'a', query: 'bc' },
    { question: '', query: 'c', history: ['a', 'b'] },
    { question: '', query: 'c', history: ['ab'] },
  ];
  const ask = (template: 'question-query' | 'question-history-query') =>
    inputs.map((query) => shared.retrieve({ queries: [query], k: 1, template }));
  const different = ask('question-history-query');
  await pendingCallbacks();
  assert.equal(asked().length, inputs.length);
  // Without the history these are "a c" twice, "a bc" (in flight), and "c" twice.
  const withoutHistory = ask('question-query');
  await pendingCallbacks();
  assert.equal(asked().length, inputs.length + 2);
  release();
  await Promise.all([...different, ...withoutHistory]);
});

type Ranking = Omit<
  RetrieveCall,
  'queries' | 'k' | 'signal' | 'patience' | 'allowPartial' | 'template' | 'truncate' | 'asked' | 'continues'
>;

const SETTINGS = hybridSettings({}, 1);
const SOURCE = { column: 'source', op: '=', value: 'wiki' } as const;
const DATED = { column: 'date', op: 'exists' } as const;
/** Values of each field of a call that changes its hits; no two are equal. A new field needs an entry. */
const DIFFERENT: { readonly [field in keyof Required<Ranking>]: readonly NonNullable<Ranking[field]>[] } = {
  mode: ['dense', 'bm25', 'hybrid'],
  bm25: [
    { ...DEFAULT_BM25, k1: 2 },
    { ...DEFAULT_BM25, b: 1 },
    { ...DEFAULT_BM25, k1Factor: true },
    { ...DEFAULT_BM25, tieBreaker: 0.3 },
    { ...DEFAULT_BM25, weights: { title: 2 } },
    { ...DEFAULT_BM25, weights: { text: 2 } },
  ],
  bm25Order: ['pyserini'],
  filter: [SOURCE, DATED, { and: [SOURCE, DATED] }, { or: [SOURCE, DATED] }, { not: SOURCE }],
  views: [['train'], ['past'], ['train', 'past']],
  exclude: [['1'], ['1', '2']],
  hybrid: [
    SETTINGS,
    { ...SETTINGS, fusion: 'rrf' },
    { ...SETTINGS, rrfK: 1, fusion: 'rrf' },
    { ...SETTINGS, denseWeight: 1 },
    { ...SETTINGS, bm25Weight: 1 },
    { ...SETTINGS, depth: 7 },
  ],
  documents: [false],
  rerank: [{ depth: 5 }, { depth: 6 }, { depth: 5, model: 'other' }, { depth: 5, allowFailure: true }],
};

for (const cached of [false, true]) {
  test(`queries that differ in mode, parameters, filter, views, fusion or reranking do not share ${cached ? 'a cached answer' : 'one in flight'}`, async () => {
    const { shared, asked, release } = share(
      cached ? { answerCache: new AnswerCache(MIB), singleFlight: false } : { hold: true },
    );
    const rankings: Partial<Ranking>[] = [
      {},
      ...Object.entries(DIFFERENT).flatMap(([field, values]) => values.map((value) => ({ [field]: value }))),
    ];
    const running: Promise<unknown>[] = [];
    const ask = async (ranking: Partial<Ranking>): Promise<void> => {
      const answer = shared.retrieve({ queries: ['a'], k: 1, ...ranking });
      running.push(answer);
      if (cached) await answer;
    };
    for (const ranking of rankings) await ask(ranking);
    await pendingCallbacks();
    assert.equal(asked().length, rankings.length);
    // Equal ones do share it, also in other words.
    for (const ranking of rankings) await ask(ranking);
    await ask({ views: ['past', 'train', 'past'] });
    await ask({ filter: { and: [DATED, SOURCE] } });
    await ask({ bm25Order: 'row' });
    await pendingCallbacks();
    assert.equal(asked().length, rankings.length);
    release();
    await Promise.all(running);
  });
}

test('an answer in flight for more hits serves for fewer, not for more', async () => {
  const { shared, release, asked } = share({ hold: true });
  const calls = [3, 2, 3, 5, 4].map((k) => shared.retrieve({ queries: ['a'], k }));
  await pendingCallbacks();
  assert.equal(asked().length, 2);
  release();
  const lengths = (await Promise.all(calls)).map(({ outcomes }) => rowsOf(outcomes)[0]!.length);
  assert.deepEqual(lengths, [3, 2, 3, 5, 4]);
});

test('followers of a cancelled leader compute the query themselves', async () => {
  const { shared, release, asked } = share({ hold: true });
  const controller = new AbortController();
  const leader = shared.retrieve({ queries: ['a', 'b'], k: 1, signal: controller.signal });
  const followers = [['b'], ['a'], ['a', 'b']].map((queries) => shared.retrieve({ queries, k: 1 }));
  await pendingCallbacks();
  assert.deepEqual(asked(), [['a', 'b']]);
  controller.abort();
  await assert.rejects(leader, trawlError('CANCELLED'));
  await pendingCallbacks();
  assert.deepEqual(asked().slice(1), [['b'], ['a']]);
  release();
  const results = await Promise.all(followers);
  assert.deepEqual(
    results.map(({ outcomes }) => outcomes.map(({ ok }) => ok)),
    [[true], [true], [true, true]],
  );
  assert.equal(shared.load.computed, 4);
});

test('a cancelled follower rejects at once, and its leader is answered', async () => {
  const { shared, release, inner } = share({ hold: true });
  const leader = shared.retrieve({ queries: ['a'], k: 1 });
  const controller = new AbortController();
  const follower = shared.retrieve({ queries: ['a'], k: 1, signal: controller.signal });
  await pendingCallbacks();
  controller.abort();
  await assert.rejects(follower, trawlError('CANCELLED'));
  assert.equal(inner.calls[0]!.signal, undefined);
  release();
  assert.equal((await leader).outcomes[0]!.ok, true);
  await assert.rejects(shared.retrieve({ queries: ['a'], k: 1, signal: AbortSignal.abort() }), trawlError('CANCELLED'));
});

test('a call that is cancelled while its queries are computed rejects, though they are answered', async () => {
  const controller = new AbortController();
  const { shared } = share({
    fake: {
      outcome() {
        controller.abort();
        return undefined;
      },
    },
  });
  await assert.rejects(shared.retrieve({ queries: ['a'], k: 1, signal: controller.signal }), trawlError('CANCELLED'));
});

test('followers do not get their leader’s error, and errors are not cached', async () => {
  let failures = 1;
  const fake: FakeRetrieverOptions = {
    async before() {
      await pendingCallbacks();
      if (failures-- > 0) throw new TrawlError('OVERLOADED', 'too much');
    },
    outcome: (input) =>
      input === 'bad' ? { ok: false, error: new TrawlError('ENCODING_FAILED', 'cannot') } : undefined,
  };
  const { shared, asked } = share({ fake, answerCache: new AnswerCache(MIB) });
  const leader = shared.retrieve({ queries: ['a', 'bad'], k: 1 });
  const follower = shared.retrieve({ queries: ['bad', 'a'], k: 1 });
  await assert.rejects(leader, trawlError('OVERLOADED'));
  assert.deepEqual(
    (await follower).outcomes.map(({ ok }) => ok),
    [false, true],
  );
  assert.deepEqual(asked(), [
    ['a', 'bad'],
    ['bad', 'a'],
  ]);
  await shared.retrieve({ queries: ['a', 'bad'], k: 1 });
  assert.deepEqual(asked()[2], ['bad']);
});

test('a single query does not follow a large call with the same query', async () => {
  const { shared, release, asked } = share({ hold: true });
  const big = shared.retrieve({ queries: Array.from({ length: 500 }, (_, i) => `query ${i}`), k: 1 });
  const lone = shared.retrieve({ queries: ['query 7'], k: 1 });
  await pendingCallbacks();
  assert.deepEqual(asked()[1], ['query 7']);
  release();
  await Promise.all([big, lone]);
});

test('a finished answer is cached for as many hits or fewer', async () => {
  const { shared, asked } = share({ answerCache: new AnswerCache(MIB) });
  const first = await shared.retrieve({ queries: ['a', 'b'], k: 3 });
  const again = await shared.retrieve({ queries: ['b', 'c', 'a'], k: 2 });
  assert.deepEqual(asked(), [['a', 'b'], ['c']]);
  assert.deepEqual(rowsOf(again.outcomes)[0], rowsOf(first.outcomes)[1]!.slice(0, 2));
  await shared.retrieve({ queries: ['a'], k: 4 });
  assert.deepEqual(asked()[2], ['a'], 'more hits than were kept');
  await shared.retrieve({ queries: ['a'], k: 4 });
  assert.equal(asked().length, 3);
  const { cached, computed, cacheEntries } = shared.load;
  assert.deepEqual([cached, computed, cacheEntries], [3, 4, 3]);
});

test('an answer for fewer hits does not replace one for more', () => {
  const cache = new AnswerCache(MIB);
  const scope = cache.newScope();
  const answer = (hits: number) => ({
    ok: true as const,
    tokens: 1,
    truncated: false,
    text: 'a',
    cut: 'nothing' as const,
    vector: null,
    certificate: { exact: true as const, rescored: null },
    hits: Array.from({ length: hits }, (_, row) => ({ row, score: 1 - row, document: '{}' })),
  });
  cache.set(scope, 'a', 4, answer(4));
  cache.set(scope, 'a', 1, answer(1));
  assert.equal(cache.get(scope, 'a', 4)?.hits.length, 4);
  cache.set(scope, 'a', 6, answer(6));
  assert.equal(cache.get(scope, 'a', 6)?.hits.length, 6);
  assert.deepEqual([cache.entries, cache.heldBy(scope).entries], [1, 1]);
});

test('an answer with all matching rows serves for any number of hits', async () => {
  const { shared, asked } = share({ answerCache: new AnswerCache(MIB) });
  await shared.retrieve({ queries: ['a'], k: 100 });
  await shared.retrieve({ queries: ['a'], k: 2_000 });
  assert.equal(asked().length, 1);
});

test('without a cache every query is computed again', async () => {
  const { shared, asked } = share();
  for (let i = 0; i < 3; i++) await shared.retrieve({ queries: ['a'], k: 1 });
  assert.equal(asked().length, 3);
  assert.equal(shared.load.cacheMaxBytes, 0);
});

test('the cache stays within its bytes; the least recently used answers are evicted', async () => {
  const cache = new AnswerCache(20_000);
  const { shared, asked } = share({ answerCache: cache });
  for (let i = 0; i < 200; i++) {
    await shared.retrieve({ queries: ['kept', `query ${i}`], k: 3 });
    assert.ok(cache.bytes <= 20_000);
  }
  assert.ok(cache.entries > 1 && cache.entries < 50, `${cache.entries} entries`);
  assert.equal(asked().filter((queries) => queries.includes('kept')).length, 1);
  const before = asked().length;
  await shared.retrieve({ queries: ['query 0'], k: 3 });
  assert.equal(asked().length, before + 1);
});

test('a shared cache never passes answers between retrievers, and drops those of a closed one', async () => {
  const cache = new AnswerCache(MIB);
  const documents = (name: string): string[] => [`{"id":"${name}"}`];
  const old = share({ answerCache: cache, fake: { documents: documents('old') } });
  const next = share({ answerCache: cache, fake: { documents: documents('next') } });
  for (const [{ shared }, name] of [
    [old, 'old'],
    [next, 'next'],
    [old, 'old'],
  ] as const) {
    const { outcomes } = await shared.retrieve({ queries: ['a'], k: 1 });
    assert.deepEqual(outcomes[0]!.ok && outcomes[0]!.hits[0]!.document, documents(name)[0]);
  }
  assert.equal(cache.entries, 2);
  old.shared.forget();
  assert.equal(cache.entries, 1);
  await next.shared.retrieve({ queries: ['a'], k: 1 });
  assert.equal(next.asked().length, 1);
});

test('each retriever reports its own part of a shared cache', async () => {
  const cache = new AnswerCache(20_000);
  const [one, other] = [share({ answerCache: cache }), share({ answerCache: cache })];
  const held = (): { cacheEntries: number; cacheBytes: number }[] => [one, other].map(({ shared }) => shared.load);
  for (let i = 0; i < 60; i++) {
    const { shared } = i % 3 === 0 ? one : other;
    await shared.retrieve({ queries: [`query ${i % 25}`], k: 1 + (i % 4) });
    const [first, second] = held();
    assert.equal(first!.cacheEntries + second!.cacheEntries, cache.entries);
    assert.equal(first!.cacheBytes + second!.cacheBytes, cache.bytes);
  }
  assert.ok(held().every(({ cacheEntries }) => cacheEntries > 0));
  one.shared.forget();
  assert.deepEqual([held()[0]!.cacheEntries, held()[0]!.cacheBytes], [0, 0]);
  assert.deepEqual([held()[1]!.cacheEntries, held()[1]!.cacheBytes], [cache.entries, cache.bytes]);
});

test('counts never fall, neither while queries wait for an equal one nor after', async () => {
  const { shared, release } = share({ hold: true, answerCache: new AnswerCache(MIB) });
  const counts = (): number[] => {
    const { queries, cached, coalesced, computed } = shared.load;
    return [queries, cached, coalesced, computed];
  };
  const calls = Array.from({ length: 5 }, () => shared.retrieve({ queries: ['a', 'b', 'a'], k: 3 }));
  await pendingCallbacks();
  assert.deepEqual(counts(), [15, 0, 5, 2]);
  release();
  await Promise.all(calls);
  assert.deepEqual(counts(), [15, 0, 13, 2]);
  await shared.retrieve({ queries: ['a'], k: 3 });
  assert.deepEqual(counts(), [16, 1, 13, 2]);
});

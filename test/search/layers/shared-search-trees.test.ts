import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrawlError } from '../../../src/base/errors.ts';
import { BM25_PROFILES } from '../../../src/engine/lexical/bm25.ts';
import type { TreeCall, TreeResult } from '../../../src/search/calls/tree-call.ts';
import { AnswerCache } from '../../../src/search/layers/answer-cache.ts';
import { SharedSearch } from '../../../src/search/layers/shared-search.ts';
import type { Search } from '../../../src/search/retriever.ts';
import { NO_TIMINGS } from '../../../src/search/timings.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const CALL: TreeCall = {
  query: { type: 'match', field: 'contents', text: 'river' },
  parameters: BM25_PROFILES.elasticsearch,
  from: 0,
  size: 10,
  count: 100,
  key: 'river',
};

/** Searches that end when the test says so. */
class Searches implements Search {
  readonly calls: TreeCall[] = [];
  readonly #ends: { resolve: (result: TreeResult) => void; reject: (error: Error) => void }[] = [];

  retrieve(): never {
    throw new Error('no query is searched here');
  }

  searchTree(call: TreeCall): Promise<TreeResult> {
    this.calls.push(call);
    return new Promise((resolve, reject) => {
      this.#ends.push({ resolve, reject });
      call.signal?.addEventListener('abort', () => reject(new TrawlError('CANCELLED', 'cancelled')));
    });
  }

  end(place: number, error?: Error): void {
    const hits = [{ row: place, score: 1, document: `{"id":"${place}"}` }];
    if (error !== undefined) this.#ends[place]!.reject(error);
    else this.#ends[place]!.resolve({ hits, best: 1, total: 1, timings: { ...NO_TIMINGS, search: 5 } });
  }
}

function shared(searches: Searches, answerCache?: AnswerCache, singleFlight = true): SharedSearch {
  return new SharedSearch(searches, new FakeRetriever().info, { answerCache, singleFlight });
}

const rowOf = ({ hits }: TreeResult): number => hits[0]!.row;

test('equal searches in flight are computed once, and later ones come from the cache', async () => {
  const searches = new Searches();
  const trees = shared(searches, new AnswerCache(1e6));
  const both = [trees.searchTree(CALL), trees.searchTree({ ...CALL })];
  searches.end(0);
  assert.deepEqual((await Promise.all(both)).map(rowOf), [0, 0]);
  const cached = await trees.searchTree(CALL);
  assert.deepEqual([rowOf(cached), cached.timings], [0, NO_TIMINGS]);
  const { queries, cached: fromCache, coalesced, computed } = trees.load;
  assert.deepEqual([queries, fromCache, coalesced, computed], [3, 1, 1, 1]);
});

test('searches that differ in anything but their signal, or have no key, are computed apart', async () => {
  const different: readonly Partial<TreeCall>[] = [
    {},
    { key: 'danube' },
    { from: 1 },
    { size: 11 },
    { count: 0 },
    { minScore: 1 },
    { parameters: BM25_PROFILES.lucene },
    { filter: { column: 'year', op: 'exists' } },
    { views: ['train'] },
    { order: [{ by: 'row', descending: true }] },
    { order: [{ by: 'row', descending: true }], after: [3] },
    { order: [{ by: 'row', descending: true }], scored: true },
  ];
  const searches = new Searches();
  const trees = shared(searches, new AnswerCache(1e6));
  const { key: _key, ...withoutKey } = CALL;
  const running = [
    ...different.map((more) => trees.searchTree({ ...CALL, ...more })),
    trees.searchTree(withoutKey),
    trees.searchTree(withoutKey),
  ];
  assert.equal(searches.calls.length, different.length + 2);
  for (const place of searches.calls.keys()) searches.end(place);
  assert.deepEqual((await Promise.all(running)).map(rowOf), [...searches.calls.keys()]);
  for (const [place, more] of different.entries())
    assert.equal(rowOf(await trees.searchTree({ ...CALL, ...more })), place);
});

test('a follower computes the search itself if its leader fails or is cancelled, and leaves when it is cancelled', async () => {
  const searches = new Searches();
  const trees = shared(searches);
  const leader = new AbortController();
  const first = trees.searchTree({ ...CALL, signal: leader.signal });
  const follower = trees.searchTree(CALL);
  const leaving = new AbortController();
  const gone = trees.searchTree({ ...CALL, signal: leaving.signal });
  leaving.abort();
  await assert.rejects(gone, trawlError('CANCELLED', /./));
  leader.abort();
  await assert.rejects(first, trawlError('CANCELLED', /./));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(searches.calls.length, 2);
  searches.end(1, new Error('broken'));
  await assert.rejects(follower, /broken/);
});

test('without a cache and single flight every search is computed, and a result larger than the cache is not kept', async () => {
  const searches = new Searches();
  const trees = shared(searches, undefined, false);
  const both = [trees.searchTree(CALL), trees.searchTree(CALL)];
  searches.end(0);
  searches.end(1);
  assert.deepEqual((await Promise.all(both)).map(rowOf), [0, 1]);
  const small = shared(searches, new AnswerCache(10));
  const third = small.searchTree(CALL);
  searches.end(2);
  await third;
  const fourth = small.searchTree(CALL);
  searches.end(3);
  assert.equal(rowOf(await fourth), 3);
});

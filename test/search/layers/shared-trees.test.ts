import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrawlError } from '../../../src/base/errors.ts';
import { BM25_PROFILES } from '../../../src/engine/lexical/bm25.ts';
import type { TreeCall, TreeResult } from '../../../src/search/calls/tree-call.ts';
import { AnswerCache } from '../../../src/search/layers/answer-cache.ts';
import { SharedTrees } from '../../../src/search/layers/shared-trees.ts';
import { NO_TIMINGS } from '../../../src/search/timings.ts';
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
class Searches {
  readonly calls: TreeCall[] = [];
  readonly #ends: { resolve: (result: TreeResult) => void; reject: (error: Error) => void }[] = [];

  readonly search = (call: TreeCall): Promise<TreeResult> => {
    this.calls.push(call);
    return new Promise((resolve, reject) => {
      this.#ends.push({ resolve, reject });
      call.signal?.addEventListener('abort', () => reject(new TrawlError('CANCELLED', 'cancelled')));
    });
  };

  end(place: number, error?: Error): void {
    const hits = [{ row: place, score: 1, document: `{"id":"${place}"}` }];
    if (error !== undefined) this.#ends[place]!.reject(error);
    else this.#ends[place]!.resolve({ hits, best: 1, total: 1, timings: { ...NO_TIMINGS, search: 5 } });
  }
}

function shared(searches: Searches, cache?: AnswerCache, singleFlight = true): SharedTrees {
  return new SharedTrees({ search: searches.search, cache, scope: cache?.newScope() ?? 0, singleFlight });
}

const rowOf = ({ hits }: TreeResult): number => hits[0]!.row;

test('equal searches in flight are computed once, and later ones come from the cache', async () => {
  const searches = new Searches();
  const trees = shared(searches, new AnswerCache(1e6));
  const both = [trees.search(CALL), trees.search({ ...CALL })];
  searches.end(0);
  assert.deepEqual((await Promise.all(both)).map(rowOf), [0, 0]);
  const cached = await trees.search(CALL);
  assert.deepEqual([rowOf(cached), cached.timings], [0, NO_TIMINGS]);
  assert.deepEqual(trees.counts, { queries: 3, cached: 1, coalesced: 1, computed: 1 });
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
    ...different.map((more) => trees.search({ ...CALL, ...more })),
    trees.search(withoutKey),
    trees.search(withoutKey),
  ];
  assert.equal(searches.calls.length, different.length + 2);
  for (const place of searches.calls.keys()) searches.end(place);
  assert.deepEqual((await Promise.all(running)).map(rowOf), [...searches.calls.keys()]);
  for (const [place, more] of different.entries()) assert.equal(rowOf(await trees.search({ ...CALL, ...more })), place);
});

test('a follower computes the search itself if its leader fails or is cancelled, and leaves when it is cancelled', async () => {
  const searches = new Searches();
  const trees = shared(searches);
  const leader = new AbortController();
  const first = trees.search({ ...CALL, signal: leader.signal });
  const follower = trees.search(CALL);
  const leaving = new AbortController();
  const gone = trees.search({ ...CALL, signal: leaving.signal });
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
  const both = [trees.search(CALL), trees.search(CALL)];
  searches.end(0);
  searches.end(1);
  assert.deepEqual((await Promise.all(both)).map(rowOf), [0, 1]);
  const small = shared(searches, new AnswerCache(10));
  const third = small.search(CALL);
  searches.end(2);
  await third;
  const fourth = small.search(CALL);
  searches.end(3);
  assert.equal(rowOf(await fourth), 3);
});

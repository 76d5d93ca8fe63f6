import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { fileFolder } from '../cli/run-trawl.ts';
import { arbitraryFilter } from '../engine/filter/arbitrary-filters.ts';
import { runs } from '../helpers/runs.ts';
import { isInView, VIEW_NAMES } from './combined-views.ts';
import { ask, type CombinedWorld, combinedWorld, GROUP, INDEX_NAMES, QUERIES, type Reply } from './combined-world.ts';
import { type NaiveHit, type NaiveReply, type SearchBody, searchNaively } from './naive-search.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;
const folder = await fileFolder();
let world: CombinedWorld;
before(async () => {
  if (loaded.ok) world = await combinedWorld(folder);
});
after(async () => {
  if (loaded.ok) await world.close();
});

const weight = fc.constantFrom(0, 0.3, 1, 2.5);
const hybrid = fc
  .record(
    {
      fusion: fc.constantFrom('rrf', 'weighted'),
      denseWeight: weight,
      bm25Weight: weight,
      rrfK: fc.constantFrom(0, 1, 60),
      depth: fc.integer({ min: 1, max: 120 }),
    },
    { requiredKeys: [] },
  )
  .filter(({ denseWeight, bm25Weight }) => denseWeight !== 0 || bm25Weight !== 0);

/** Any request to /v1/search. Each field here has its part in `searchNaively`, so a new kind of restriction belongs in both. */
const searchBody: fc.Arbitrary<SearchBody> = fc.record(
  {
    queries: fc.array(fc.constantFrom(...QUERIES), { minLength: 1, maxLength: 3 }),
    index: fc.constantFrom<SearchBody['index']>(...INDEX_NAMES, GROUP, [...INDEX_NAMES].reverse()),
    mode: fc.constantFrom('dense', 'bm25', 'hybrid'),
    k: fc.integer({ min: 1, max: 12 }),
    filter: arbitraryFilter,
    exclude: fc.array(
      fc.oneof(
        fc.nat(60),
        fc.nat(30).map((i) => `wiki-${i}`),
        fc.nat(30).map((i) => `news-${i}`),
      ),
      { maxLength: 12 },
    ),
    fuse: fc.constantFrom('none', 'rrf', 'max'),
    deduplicate: fc.constantFrom('none', 'passage', 'title', 'document'),
    candidates: fc.integer({ min: 1, max: 30 }),
    minScore: fc.constantFrom(0, 0.016, 0.1, 0.5, 2),
    rerank: fc.record({ depth: fc.integer({ min: 1, max: 15 }) }),
    bm25: fc.record(
      { k1: fc.constantFrom(0, 1.2), b: fc.constantFrom(0, 1), profile: fc.constantFrom('lucene', 'elasticsearch') },
      { requiredKeys: [] },
    ),
    hybrid,
  },
  { requiredKeys: ['queries', 'index', 'mode', 'k'] },
);

interface SearchReply {
  readonly results: readonly { readonly ok: boolean; readonly hits?: readonly NaiveHit[] }[];
  readonly hits?: readonly NaiveHit[];
}

const HIT_FIELDS = ['index', 'row', 'score', 'indexScore', 'firstStage', 'dense', 'bm25', 'fused', 'from'] as const;

/** What the reply says of its hits, in the form of `searchNaively`. */
function hitsOf({ results, hits }: SearchReply): NaiveReply {
  const fields = (hit: NaiveHit): NaiveHit =>
    Object.fromEntries(HIT_FIELDS.flatMap((name) => (hit[name] === undefined ? [] : [[name, hit[name]]]))) as never;
  if (hits !== undefined) return { hits: hits.map(fields) };
  return { results: results.map((result) => result.hits!.map(fields)) };
}

function namesOf({ index }: SearchBody): readonly string[] {
  return index === GROUP ? INDEX_NAMES : [index].flat();
}

/** The view in the path of a request, or none. */
const view = fc.option(fc.constantFrom(...VIEW_NAMES), { nil: undefined });

function pathOf(name: string | undefined): string {
  return `${name === undefined ? '' : `/views/${name}`}/v1/search`;
}

test('every combination of mode, filter, view, exclusion, fusion, indexes and reranking gives the hits of a naive search', {
  skip,
}, async () => {
  let found = 0;
  await fc.assert(
    fc.asyncProperty(searchBody, view, async (body, name) => {
      const indexes = namesOf(body).map((each) => world.indexes.find((index) => index.name === each)!);
      const expected = await searchNaively(body, indexes, world.models, (passage) => isInView(name, passage));
      // The second answer comes from the cache.
      for (let i = 0; i < 2; i++) {
        const reply = await ask(world.cached, pathOf(name), body);
        assert.equal(reply.status, 200, JSON.stringify(reply.body));
        assert.deepEqual(hitsOf(reply.body as SearchReply), expected);
      }
      found += (expected.hits ?? expected.results!.flat()).length;
    }),
    { numRuns: runs(50, 150) },
  );
  assert.ok(found > 0);
});

/** A reply without what depends on the other requests: times, and the rows that were rescored for a query. */
function lasting({ status, body }: Reply): unknown {
  const text = JSON.stringify(body, (name, value) => (name === 'timings' || name === 'rescored' ? undefined : value));
  return [status, JSON.parse(text)];
}

/** Searches that are asked at once. */
const COUNT = runs(24, 60);

/** Requests to other routes, among them some that are refused. */
const OTHERS: readonly [string, object][] = [
  ['/retrieve', { queries: ['river bridge', 'saffron'], topk: 7, return_scores: true }],
  ['/indexes/both/retrieve', { queries: ['winter music'], topk: 5, return_scores: true }],
  ['/v1/embeddings', { model: 'token-average-256', input: ['king', 'law and parliament', 'king'] }],
  ['/v1/score', { queries: [{ query: 'ship engine', rows: [1, 2, 30] }], maxRank: 50 }],
  ['/v1/passages', { rows: [0, 3, 7], wholeDocuments: true }],
  ['/rerank', { query: 'river', texts: ['a river', 'a mountain'] }],
  ['/v1/search', { queries: ['river'], filter: "sauce = 'a'" }],
  ['/v1/search', { queries: ['river'], index: 'nowhere' }],
  ['/views/nothing/v1/search', { queries: ['river'] }],
  ['/views/train/retrieve', { queries: ['river bridge'], topk: 6, return_scores: true }],
  ['/v1/search', { queries: ['river bridge'], mode: 'bm25', k: 4, explain: true, maxChars: 40 }],
];

test('dozens of requests of all modes at once get the replies that each gets alone', { skip }, async () => {
  const bodies = fc.sample(searchBody, { numRuns: COUNT, seed: 16 });
  const views = fc.sample(view, { numRuns: COUNT, seed: 17 });
  const searches = bodies.map((body, i): [string, object] => [pathOf(views[i]), body]);
  const requests = [...OTHERS, ...OTHERS, ...searches];
  const alone: unknown[] = [];
  for (const [path, body] of requests) alone.push(lasting(await ask(world.uncached, path, body)));
  for (const url of [world.uncached, world.cached]) {
    const replies = await Promise.all(requests.map(([path, body]) => ask(url, path, body)));
    for (const [i, reply] of replies.entries()) {
      assert.deepEqual(lasting(reply), alone[i], JSON.stringify(requests[i]));
    }
  }
  assert.ok(new Set(alone.map((reply) => (reply as [number])[0])).size > 1, 'some requests are refused');
});

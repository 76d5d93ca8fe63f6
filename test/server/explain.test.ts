import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../helpers/seeded-random.ts';
import { build, errorOf, postTo } from './build.ts';
import { termCounts, type WordPassage, withoutWords, wordRetrievers } from './word-server.ts';

interface Term {
  readonly term: string;
  readonly field: string;
  readonly boost: number;
  readonly documentFrequency: number;
  readonly score: number;
}

interface ExplainedHit {
  readonly id: string;
  readonly row: number;
  readonly score: number;
  readonly terms?: readonly Term[];
  readonly from?: readonly { readonly query: number }[];
}

interface Answer {
  readonly results: readonly { readonly hits?: readonly ExplainedHit[] }[];
  readonly hits?: readonly ExplainedHit[];
}

const WORDS = ['rivers', 'river', 'Vienna', 'the', 'bridge', "bridge's", 'flows', 'danube', 'of', 'stone', 'old'];

function passages(): WordPassage[] {
  const random = seededRandom(7);
  const word = (): string => WORDS[Math.floor(WORDS.length * random() ** 2)]!;
  return Array.from({ length: 300 }, (_, row) => ({
    id: `p${row}`,
    text: Array.from({ length: 1 + Math.floor(random() * 20) }, word).join(' '),
  }));
}

/** Checks the terms of a hit against the texts. */
function assertExplained(hit: ExplainedHit, query: string, texts: readonly string[]): void {
  const boosts = termCounts(query);
  const inPassage = termCounts(texts[hit.row]!);
  const expected = [...boosts].filter(([term]) => inPassage.has(term));
  assert.deepEqual(
    hit.terms!.map(({ term, field, boost, documentFrequency }) => [term, field, boost, documentFrequency]),
    expected.map(([term, boost]) => [
      term,
      'contents',
      boost,
      texts.filter((text) => termCounts(text).has(term)).length,
    ]),
  );
}

function sumOf(terms: readonly Term[]): number {
  return Math.fround(terms.reduce((sum, { score }) => sum + score, 0));
}

for (const engine of ['native', 'reference'] as const) {
  test(`${engine}: the terms of a hit are those that query and passage share, and add up to its score`, {
    skip: withoutWords,
  }, async (t) => {
    const list = passages();
    const texts = list.map(({ text }) => text);
    const app = build(t, (await wordRetrievers(t, list))[engine]);
    const queries = ['Which rivers flow under old bridges? River!', 'danube danube stone', 'the of', 'unknown vienna'];
    const { status, json } = await postTo(app, '/v1/search', { queries, k: 20, mode: 'bm25', explain: true });
    assert.equal(status, 200);
    const { results } = json as Answer;
    for (const [q, query] of queries.entries()) {
      assert.equal(results[q]!.hits!.length, query === 'the of' ? 0 : 20);
      for (const hit of results[q]!.hits!) {
        assertExplained(hit, query, texts);
        assert.equal(sumOf(hit.terms!), hit.score);
      }
    }
  });
}

test('without explain, hits have no terms and are otherwise the same', { skip: withoutWords }, async (t) => {
  const app = build(t, (await wordRetrievers(t, passages())).native);
  const request = { queries: ['old bridge'], k: 3, exclude: ['p3'] };
  const ask = async (more: object): Promise<readonly ExplainedHit[]> =>
    ((await postTo(app, '/v1/search', { ...request, ...more })).json as Answer).results[0]!.hits!;
  const [plain, explained] = [await ask({}), await ask({ explain: true })];
  assert.ok(plain.every((hit) => !('terms' in hit)));
  assert.deepEqual(
    explained.map(({ terms: _, ...hit }) => hit),
    plain,
  );
  assert.deepEqual(await ask({ explain: false }), plain);
});

test('a fused hit has the terms of the query that found it best', { skip: withoutWords }, async (t) => {
  const list = passages();
  const texts = list.map(({ text }) => text);
  const app = build(t, (await wordRetrievers(t, list)).native);
  const queries = ['old bridge', { question: 'which river?', query: 'danube' }, 'stone'];
  const { json } = await postTo(app, '/v1/search', { queries, k: 8, fuse: 'rrf', explain: true });
  const { hits, results } = json as Answer;
  assert.equal(hits!.length, 8);
  assert.ok(results.every((result) => result.hits === undefined));
  const composed = ['old bridge', 'which river? danube', 'stone'];
  for (const hit of hits!) {
    assertExplained(hit, composed[hit.from![0]!.query]!, texts);
    assert.equal(sumOf(hit.terms!), hit.score);
  }
});

test('a fused hit has terms and excerpt of the query that found it, also if another found a duplicate with its score', {
  skip: withoutWords,
}, async (t) => {
  const filler = 'of the '.repeat(10);
  const list = ['alpha', 'beta'].map((word, row) => ({ id: `p${row}`, text: `T\n${filler}${word} ${filler}` }));
  const app = build(t, (await wordRetrievers(t, list)).native);
  const request = { queries: ['beta', 'alpha'], k: 5, fuse: 'max', deduplicate: 'title', explain: true, maxChars: 30 };
  const { json } = await postTo(app, '/v1/search', request);
  const [hit, ...more] = (json as { hits: (ExplainedHit & { text: string })[] }).hits;
  assert.deepEqual(more, []);
  assert.deepEqual([hit!.id, ...hit!.terms!.map(({ term }) => term)], ['p0', 'alpha']);
  assert.match(hit!.text, /alpha/);
  assert.equal(sumOf(hit!.terms!), hit!.score);
});

test("the terms of a hit in Pyserini's order have exact scores", { skip: withoutWords }, async (t) => {
  const app = build(t, (await wordRetrievers(t, passages())).native);
  const ask = async (bm25: object): Promise<readonly ExplainedHit[]> => {
    const { json } = await postTo(app, '/v1/search', { queries: ['old'], k: 30, bm25, explain: true });
    return (json as Answer).results[0]!.hits!;
  };
  const exact = new Map((await ask({})).map(({ id, score }) => [id, score]));
  for (const { score, terms } of await ask({ order: 'pyserini' })) {
    assert.ok(Math.abs(sumOf(terms!) - score) < 2e-4);
    assert.ok([...exact.values()].includes(sumOf(terms!)));
  }
  const weighted = await ask({ profile: 'elasticsearch' });
  for (const { score, terms } of weighted) assert.equal(sumOf(terms!), score);
});

test('explain without mode bm25, or of too many passages, is refused with the way out', {
  skip: withoutWords,
}, async (t) => {
  const app = build(t, (await wordRetrievers(t, passages())).native);
  const refused = async (body: object, refusing = app): Promise<string> => {
    const { status, json } = await postTo(refusing, '/v1/search', body);
    assert.equal(status, 422);
    const { code, message } = errorOf(json);
    return `${code} ${message}`;
  };
  const dense =
    /^INVALID_REQUEST body\.explain: explain needs mode bm25 or hybrid, but the mode is dense\. Set "mode": "bm25"/;
  assert.match(await refused({ queries: ['a'], mode: 'dense', explain: true }), dense);
  assert.match(await refused({ queries: ['a'], explain: true }, build(t)), dense, "an index's default mode is dense");
  assert.match(
    await refused({ queries: new Array(100).fill('a'), k: 101, explain: true }),
    /^K_TOO_LARGE 100 queries with 101 passages each .* 10000 explained passages .*leave out explain/,
  );
  assert.match(await refused({ queries: ['a'], explain: 'perhaps' }), /^INVALID_REQUEST/);
  assert.match(await refused({ queries: ['a'], bm25: { order: 'id' } }), /^INVALID_REQUEST/);
});

test('explain of hits with over a million terms is refused, also after fusion', { skip: withoutWords }, async (t) => {
  const words = Array.from({ length: 4_001 }, (_, i) => `w${i}`);
  const { native } = await wordRetrievers(
    t,
    Array.from({ length: 250 }, (_, row) => ({ id: row, text: words.join(' ') })),
  );
  const app = build(t, native);
  const ask = (more: object = {}): ReturnType<typeof postTo> =>
    postTo(app, '/v1/search', { queries: [words.join(' ')], k: 250, explain: true, ...more });
  for (const more of [{}, { fuse: 'max' }]) {
    const refused = await ask(more);
    assert.equal(refused.status, 422);
    const { code, message } = errorOf(refused.json);
    assert.match(`${code} ${message}`, /^K_TOO_LARGE .* more than 1000000 terms .*leave out explain/);
  }
  const { status, json } = await ask({ k: 2 });
  assert.equal(status, 200);
  assert.deepEqual(
    (json as Answer).results[0]!.hits!.map(({ terms }) => terms!.length),
    [4_001, 4_001],
  );
  assert.equal((await ask({ explain: false })).status, 200);
});

test("the server's order holds for every dialect, and a request's own wins", { skip: withoutWords }, async (t) => {
  const ids = ['9', '10', 'a', 'B', '100', '2'];
  const list = ids.map((id) => ({ id, text: 'danube river' }));
  const { native } = await wordRetrievers(t, list);
  const [usual, pyserini] = [build(t, native), build(t, native, { bm25Order: 'pyserini' })];
  const byId = ['10', '100', '2', '9', 'B', 'a'];
  const own = async (app: typeof usual, body: object): Promise<string[]> => {
    const { json } = await postTo(app, '/v1/search', { queries: ['river'], k: 6, ...body });
    return (json as Answer).results[0]!.hits!.map(({ id }) => id);
  };
  const searchR1 = async (app: typeof usual): Promise<[string, number][]> => {
    const { json } = await postTo(app, '/retrieve', { queries: ['river'], topk: 6, return_scores: true });
    const { result } = json as { result: { document: { id: string }; score: number }[][] };
    return result[0]!.map(({ document, score }) => [document.id, score]);
  };
  assert.deepEqual(await own(usual, {}), ids);
  assert.deepEqual(await own(pyserini, {}), byId);
  assert.deepEqual(await own(usual, { bm25: { order: 'pyserini' } }), byId);
  assert.deepEqual(await own(pyserini, { bm25: { order: 'row', k1: 1.2 } }), ids);
  const scored = await searchR1(pyserini);
  assert.deepEqual(
    scored.map(([id]) => id),
    byId,
  );
  assert.ok(
    scored.every(([, score], i) => i === 0 || score < scored[i - 1]![1]),
    'no two scores are equal',
  );
  assert.equal(new Set((await searchR1(usual)).map(([, score]) => score)).size, 1);
});

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ServerConfig } from '../../src/server/server-config.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { serve } from './build.ts';
import { type WordPassage, withoutWords, wordRetrievers } from './word-server.ts';

function passages(): WordPassage[] {
  const random = seededRandom(41);
  const words = (count: number): string =>
    Array.from({ length: count }, () => `w${Math.floor(4_000 ** random()) - 1}`).join(' ');
  return Array.from({ length: 2_500 }, (_, row) => {
    const special = row % 50 === 7 ? ' q naïve 京都 😀 ' : row === 9 ? ` ${'x'.repeat(255)} a\ufffdb ` : ' ';
    return { id: `p${row}`, text: row % 97 === 3 ? '' : words(1 + Math.floor(random() * 50)) + special };
  });
}

const DISTINCT = Array.from({ length: 100_000 }, (_, i) => `w${i}`).join(' ');

/** Queries as JSON text, because an object cannot spell every one. */
const HOSTILE: Readonly<Record<string, string>> = {
  'an empty text': '""',
  'stop words only': '"the of and THE"',
  'control characters': String.raw`"\u0001\u001b[2J\u007f w1\r\n\t\u0085"`,
  'NUL bytes': String.raw`"\u0000w1\u0000\u0000w2 q\u0000"`,
  'broken surrogates': String.raw`"\ud800 w1 \udc00\ud800w2 a\ud800b \ud83d"`,
  'a surrogate pair': String.raw`"\ud83d\ude00 w3"`,
  'text directions and joiners': String.raw`"\u202ew1\u200d \ufeffw2\u2060"`,
  'a word 1,000 times': JSON.stringify('w1 '.repeat(1_000)),
  'a word as often as fits in a query': JSON.stringify('q '.repeat(500_000)),
  '100,000 words': JSON.stringify(DISTINCT),
  'a term of 1,000,000 letters': JSON.stringify('x'.repeat(1_000_000)),
  '1,000,000 marks': JSON.stringify('\u0301'.repeat(1_000_000)),
};
const NAMES = Object.keys(HOSTILE);
/** For searches that take the reference long with 100,000 words. */
const SHORTER = { ...HOSTILE, '100,000 words': JSON.stringify(DISTINCT.slice(0, 20_000)) };

interface Reply {
  readonly results: readonly { readonly embedded: { readonly tokens: number }; readonly hits: readonly object[] }[];
  readonly timings: object;
}

async function servers(t: TestContext, config: Partial<ServerConfig> = {}) {
  const { native, reference } = await wordRetrievers(t, passages());
  const [ours, oracle] = [(await serve(t, native, config)).url, (await serve(t, reference, config)).url];
  return { ours, oracle };
}

async function search(url: string, queries: readonly string[], fields: object): Promise<Reply['results']> {
  const rest = JSON.stringify(fields).slice(1);
  const response = await fetch(`${url}/v1/search`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: `{"queries":[${queries.join(',')}],${rest}`,
  });
  const text = await response.text();
  assert.equal(response.status, 200, text.slice(0, 300));
  return (JSON.parse(text) as Reply).results;
}

test('hostile queries get the answers of the reference, together and alone', { skip: withoutWords }, async (t) => {
  const { ours, oracle } = await servers(t);
  const queries = Object.values(HOSTILE);
  const expected = await search(oracle, queries, { k: 2_048 });
  const together = await search(ours, queries, { k: 2_048 });
  const best = await Promise.all(queries.map((query) => search(ours, [query], { k: 1 })));
  for (const [i, name] of NAMES.entries()) {
    assert.deepEqual(together[i], expected[i], name);
    assert.deepEqual(best[i], [{ ...expected[i], hits: expected[i]!.hits.slice(0, 1) }], name);
  }
});

for (const fields of [
  { k: 3, explain: true },
  { k: 3, maxChars: 60 },
  { k: 5, bm25: { order: 'pyserini' } },
]) {
  test(`hostile queries get the answers of the reference with ${JSON.stringify(fields)}`, {
    skip: withoutWords,
  }, async (t) => {
    const { ours, oracle } = await servers(t);
    const queries = Object.values(SHORTER);
    const [found, expected] = [await search(ours, queries, fields), await search(oracle, queries, fields)];
    for (const [i, name] of NAMES.entries()) assert.deepEqual(found[i], expected[i], name);
  });
}

test('the number of terms and hits of hostile queries is what their words are', { skip: withoutWords }, async (t) => {
  const { ours } = await servers(t);
  const results = await search(ours, Object.values(HOSTILE), { k: 2_048 });
  const found = Object.fromEntries(
    NAMES.map((name, i) => [name, [results[i]!.embedded.tokens, results[i]!.hits.length]] as const),
  );
  for (const name of ['an empty text', 'stop words only']) assert.deepEqual(found[name], [0, 0], name);
  assert.deepEqual(found['a word as often as fits in a query'], [1, 50]);
  assert.equal(found['a word 1,000 times']![0], 1);
  assert.deepEqual(found['100,000 words'], [100_000, 2_048]);
  // Long words are split after 255 letters; the last part has 145.
  assert.deepEqual(found['a term of 1,000,000 letters'], [2, 1]);
  assert.ok(found['NUL bytes']![1]! > 50);
});

test('a query or k over the limit is refused, and larger limits are kept', { skip: withoutWords }, async (t) => {
  const { native, reference } = await wordRetrievers(t, passages());
  const { url } = await serve(t, native);
  const million = 'q '.repeat(1_000_000);
  const refused = async (body: object): Promise<string> => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${url}/v1/search`, { method: 'POST', headers, body: JSON.stringify(body) });
    const { error } = (await response.json()) as { error: { code: string } };
    return `${response.status} ${error.code}`;
  };
  assert.equal(await refused({ queries: [million], k: 1 }), '413 QUERY_TOO_LONG');
  assert.equal(await refused({ queries: Array(9).fill('q '.repeat(1_000_000)), k: 1 }), '413 BODY_TOO_LARGE');
  assert.equal(await refused({ queries: ['q'], k: 2_049 }), '422 K_TOO_LARGE');
  assert.equal(await refused({ queries: Array(20_001).fill(''), k: 1 }), '413 TOO_MANY_QUERIES');
  const wide = { maxQueryChars: 4_000_000, maxK: 5_000 };
  const [ours, oracle] = [(await serve(t, native, wide)).url, (await serve(t, reference, wide)).url];
  const queries = [JSON.stringify(million), '"w0 w1"'];
  assert.deepEqual(await search(ours, queries, { k: 5_000 }), await search(oracle, queries, { k: 5_000 }));
});

test('a client that leaves during a hostile query does not stop the next request', {
  skip: withoutWords,
}, async (t) => {
  const { ours } = await servers(t);
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ queries: Array(12).fill(DISTINCT), k: 2_000, explain: false });
  for (let i = 0; i < 3; i++) {
    const leaving = fetch(`${ours}/v1/search`, { method: 'POST', headers, body, signal: AbortSignal.timeout(60) });
    await leaving.then(
      (response) => response.body?.cancel(),
      () => undefined,
    );
  }
  assert.equal((await search(ours, ['"q"'], { k: 3 }))[0]!.hits.length, 3);
});

for (const order of ['row', 'pyserini']) {
  test(`1,000 excluded ids leave the next best passages, order ${order}`, { skip: withoutWords }, async (t) => {
    const { ours } = await servers(t);
    const bm25 = { order };
    for (const query of ['w0', 'w0 w1 w2', 'w5 w40', 'q', 'w3999']) {
      const [all] = await search(ours, [JSON.stringify(query)], { k: 2_048, bm25 });
      const hits = all!.hits as readonly { readonly id: string; readonly score: number }[];
      const random = seededRandom(query.length);
      const best = hits.slice(0, 1_000).map(({ id }) => id);
      const some = hits.map(({ id }) => id).filter(() => random() < 0.6);
      const others = Array.from({ length: 1_000 }, (_, i) => `no passage has this id ${i}`);
      for (const exclude of [best, some.slice(0, 1_000), [...best.slice(0, 500), ...others.slice(0, 500)], others]) {
        const [found] = await search(ours, [JSON.stringify(query)], { k: 10, exclude, bm25 });
        const expected = hits.filter(({ id }) => !exclude.includes(id)).slice(0, 10);
        assert.deepEqual(found!.hits, expected, `${query}, ${exclude.length} ids`);
      }
    }
  });
}

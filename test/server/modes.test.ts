import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { indexOpener } from '../../cli/serve/served-indexes.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { AnswerCache } from '../../src/search/layers/answer-cache.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import { buildApp } from '../../src/server/app.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { fileFolder, runTrawl, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { type Answer, encoderPools, served } from './served-index.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;
const folder = await fileFolder();
const both = join(folder, 'both');
const dense = join(folder, 'dense');
const words = join(folder, 'words');
const fields = join(folder, 'fields');
before(async () => {
  if (!loaded.ok) return;
  await runTrawl(['index', SAMPLE_PASSAGES, '--out', both, '--bm25', '--model', 'token-average-256', '--quiet']);
  await runTrawl(['index', SAMPLE_PASSAGES, '--out', dense, '--quiet']);
  await runTrawl(['index', SAMPLE_PASSAGES, '--out', words, '--bm25', '--quiet']);
  await runTrawl(['index', SAMPLE_PASSAGES, '--out', fields, '--bm25', '--bm25-fields', 'title,text', '--quiet']);
});

const VIENNA = 'Which river flows through Vienna?';

const scoresOf = ({ body }: Answer): number[] => body.results[0]!.hits.map(({ score }) => score);

test('/v1/search ranks by vectors unless the request asks for bm25', { skip }, async () => {
  await served(both, async (post) => {
    const usual = await post('/v1/search', { queries: [VIENNA], k: 3 });
    assert.equal(usual.body.mode, 'dense');
    const lexical = await post('/v1/search', { queries: [VIENNA], k: 3, mode: 'bm25' });
    assert.equal(lexical.body.mode, 'bm25');
    const [found] = lexical.body.results;
    assert.equal(found!.hits[0]!.id, 's-0082');
    assert.deepEqual(found!.embedded, { text: VIENNA, tokens: 5, cut: 'nothing' });
    assert.deepEqual(found!.certificate, { exact: true, rescored: null });
    assert.notDeepEqual(scoresOf(lexical), scoresOf(usual));
  });
});

test('the parameters of bm25 come from the request, a profile, or the index', { skip }, async () => {
  await served(both, async (post) => {
    const scores = async (bm25?: object): Promise<number[]> =>
      scoresOf(await post('/v1/search', { queries: [VIENNA], k: 3, mode: 'bm25', bm25 }));
    const usual = await scores();
    assert.deepEqual(await scores({ k1: 0.9, b: 0.4 }), usual);
    assert.deepEqual(await scores({ profile: 'lucene' }), usual);
    assert.notDeepEqual(await scores({ k1: 1.2 }), usual);
    const elasticsearch = await scores({ profile: 'elasticsearch' });
    assert.notDeepEqual(elasticsearch, await scores({ k1: 1.2, b: 0.75 }));
    for (const bm25 of [{ k1: -1 }, { b: 2 }, { profile: 'solr' }, { k: 1 }]) {
      const { status, body } = await post('/v1/search', { queries: [VIENNA], mode: 'bm25', bm25 });
      assert.equal(status, 422, JSON.stringify(bm25));
      assert.match(JSON.stringify(body), /INVALID_REQUEST/);
    }
  });
});

test("every dialect ranks as the server's mode says", { skip }, async () => {
  await served(both, async (post) => {
    const body = { queries: [VIENNA], topk: 1, return_scores: true };
    const lexical = await post('/retrieve', body, { mode: 'bm25' });
    const usual = await post('/retrieve', body);
    assert.equal(lexical.body.result[0]![0]!.document.id, 's-0082');
    assert.notEqual(lexical.body.result[0]![0]!.score, usual.body.result[0]![0]!.score);
    const request = await post('/v1/search', { queries: [VIENNA], mode: 'dense' }, { mode: 'bm25' });
    assert.equal(request.body.mode, 'dense', 'the request wins');
  });
});

test('a mode that the index lacks is refused with the way to get it', { skip }, async () => {
  await served(dense, async (post) => {
    const { status, body } = await post('/v1/search', { queries: [VIENNA], mode: 'bm25' });
    assert.ok(status >= 400 && status < 600 && status !== 500, `${status}`);
    assert.match(JSON.stringify(body), /no inverted index.*trawl optimize/);
  });
  await assert.rejects(openRetriever(dense, { modes: ['bm25'] }), /no inverted index/);
});

test('an index opened for bm25 alone needs no encoder, and refuses vectors', { skip }, async () => {
  const without = { modes: ['bm25'], model: 'no-such-model' } as const;
  await served(
    both,
    async (post) => {
      assert.equal((await post('/v1/search', { queries: [VIENNA] })).body.mode, 'bm25');
      const { status, body } = await post('/v1/search', { queries: [VIENNA], mode: 'dense' });
      assert.ok(status >= 400 && status !== 500);
      assert.match(JSON.stringify(body), /can be searched by BM25 only/);
      assert.ok((await post('/v1/embeddings', { input: 'a text' })).status >= 400);
    },
    without,
  );
});

test('answers of different modes and parameters are cached apart', { skip }, async () => {
  await served(
    both,
    async (post) => {
      const ask = async (more: object): Promise<number[]> =>
        scoresOf(await post('/v1/search', { queries: [VIENNA], k: 3, ...more }));
      const wanted = [{}, { mode: 'bm25' }, { mode: 'bm25', bm25: { k1: 2 } }, { mode: 'bm25', bm25: { b: 0 } }];
      const first = [];
      for (const more of wanted) first.push(await ask(more));
      for (const [i, more] of wanted.entries()) assert.deepEqual(await ask(more), first[i]);
      assert.equal(new Set(first.map(String)).size, wanted.length);
    },
    { answerCache: new AnswerCache(1e6) },
  );
});

test('exclusion and deduplication search deeper by words too', { skip }, async () => {
  await served(both, async (post) => {
    const all = await post('/v1/search', { queries: [VIENNA], k: 5, mode: 'bm25' });
    const ids = all.body.results[0]!.hits.map(({ id }) => id);
    const rest = await post('/v1/search', { queries: [VIENNA], k: 3, mode: 'bm25', exclude: ids.slice(0, 2) });
    assert.deepEqual(
      rest.body.results[0]!.hits.map(({ id }) => id),
      ids.slice(2),
    );
  });
});

test('equal queries of one request are answered alike, and hostile ones too', { skip }, async () => {
  await served(both, async (post) => {
    const hostile = ['', 'the of and', '\u0000\u001b[2J', 'w '.repeat(100_000), 'x'.repeat(900_000), VIENNA, VIENNA];
    const { status, body } = await post('/v1/search', { queries: hostile, k: 2, mode: 'bm25' });
    assert.equal(status, 200);
    const counts = body.results.map(({ hits }) => hits.length);
    assert.deepEqual(counts.slice(0, 3), [0, 0, 0]);
    assert.deepEqual(body.results[5]!.hits, body.results[6]!.hits);
    assert.equal(counts[5], 2);
  });
});

test('an index of words is served with all routes', { skip }, async () => {
  const retriever = await openRetriever(words);
  try {
    const app = buildApp(retriever);
    const get = async (url: string) => (await app.inject({ url })).json();
    const post = async (url: string, payload: object) => (await app.inject({ method: 'POST', url, payload })).json();
    const { indexes } = await get('/v1/indexes');
    assert.deepEqual([indexes[0].model, indexes[0].metric, indexes[0].modes], [null, null, ['bm25']]);
    assert.deepEqual((await get('/v1/models')).data, []);
    const ready = await get('/readyz');
    assert.deepEqual([ready.status, ready.model, ready.modes], ['ready', null, ['bm25']]);
    assert.equal((await get('/health')).retrieval_method, 'bm25');
    assert.equal((await post('/v1/search', { queries: [VIENNA] })).mode, 'bm25');
    const { result } = await post('/retrieve', { queries: [VIENNA], topk: 1, return_scores: true });
    assert.equal(result[0][0].document.id, 's-0082');
    const embedding = await app.inject({ method: 'POST', url: '/v1/embeddings', payload: { input: 'a', model: 'x' } });
    assert.ok(embedding.statusCode >= 400 && embedding.statusCode !== 500, `${embedding.statusCode}`);
    assert.equal((await app.inject({ url: '/metrics' })).statusCode, 200);
  } finally {
    await retriever.close();
  }
});

test('an index with title and text apart ranks by the best field, with weights from the request', {
  skip,
}, async () => {
  const search = { queries: ['Vienna Danube'], k: 300, documents: true };
  await served(
    fields,
    async (post) => {
      const scores = async (bm25?: object): Promise<Map<string, number>> => {
        const { status, body } = await post('/v1/search', { ...search, bm25 });
        assert.equal(status, 200, JSON.stringify(body));
        return new Map(body.results[0]!.hits.map(({ id, score }) => [id, score]));
      };
      const [title, text] = [await scores({ weights: { text: 0 } }), await scores({ weights: { title: 0 } })];
      const best = await scores();
      assert.ok(title.size > 0 && text.size > title.size);
      for (const [id, score] of best) assert.equal(score, Math.max(title.get(id) ?? 0, text.get(id) ?? 0), id);
      assert.deepEqual(await scores({ weights: {} }), best);
      assert.deepEqual(await scores({ tieBreaker: 0 }), best);
      const tied = await scores({ tieBreaker: 0.5 });
      assert.ok([...tied].some(([id, score]) => score > best.get(id)!));
      const doubled = await scores({ weights: { title: 2, text: 2 } });
      for (const [id, score] of doubled) assert.equal(score, 2 * best.get(id)!, id);
      assert.notDeepEqual(await scores({ weights: { title: 3 } }), best);
      for (const bm25 of [
        { weights: { contents: 1 } },
        { weights: { title: -1 } },
        { weights: [1, 2] },
        { weights: { title: 0, text: 0 } },
        { tieBreaker: 2 },
      ]) {
        const { status, body } = await post('/v1/search', { ...search, bm25 });
        assert.equal(status, 422, JSON.stringify(bm25));
        assert.match(JSON.stringify(body), /INVALID_REQUEST/);
      }
      const { result } = (await post('/retrieve', { queries: ['Danube'], topk: 1, return_scores: true })).body;
      assert.equal(result[0]![0]!.document.id, 's-0082', 'every dialect searches both fields');
    },
    { answerCache: new AnswerCache(1e6) },
  );
  await served(
    words,
    async (post) => {
      assert.equal((await post('/v1/search', { ...search, bm25: {} })).status, 200);
      for (const bm25 of [{ weights: { title: 2 } }, { weights: {} }, { tieBreaker: 0 }]) {
        const { status, body } = await post('/v1/search', { ...search, bm25 });
        assert.equal(status, 501, `${JSON.stringify(bm25)} with the answer of the same search without it in the cache`);
        assert.match(JSON.stringify(body), /NOT_SUPPORTED.*--bm25-fields title,text/);
      }
    },
    { answerCache: new AnswerCache(1e6) },
  );
});

test('a reload onto an index without the mode of the server is a 409, and the old index still answers', {
  skip,
}, async (t) => {
  const opener = indexOpener({ modes: ['bm25'] }, { warm: false, signal: new AbortController().signal });
  const holder = IndexRegistry.opening([{ name: 'words', folder: words }], opener);
  await holder.open();
  t.after(() => holder.close());
  const app = buildApp(holder);
  const post = async (url: string, payload: object) => app.inject({ method: 'POST', url, payload });
  const refused = await post('/admin/indexes/words/reload', { folder: dense });
  assert.deepEqual([refused.statusCode, refused.json().error.code], [409, 'RELOAD_FAILED']);
  assert.match(refused.json().error.message, /NOT_SUPPORTED.*The old index still answers/);
  assert.equal((await post('/retrieve', { queries: [VIENNA] })).statusCode, 200);
  const own = buildApp(await openRetriever(words));
  const unknown = await own.inject({ method: 'POST', url: '/admin/indexes/words/reload', payload: {} });
  assert.deepEqual([unknown.statusCode, unknown.json().error.code], [501, 'NOT_SUPPORTED'], 'it knows no folder');
});

test('the facts about an index name the fields of its inverted indexes', { skip }, async () => {
  const facts = async (index: string): Promise<unknown[]> => {
    const retriever = await openRetriever(index, { encoderPools, modes: index === dense ? ['dense'] : ['bm25'] });
    try {
      const app = buildApp(retriever);
      const { indexes } = (await app.inject({ url: '/v1/indexes' })).json();
      const ready = (await app.inject({ url: '/readyz' })).json();
      return [indexes[0].bm25, ready.bm25_fields];
    } finally {
      await retriever.close();
    }
  };
  const settings = { analyser: 'english', k1: 0.9, b: 0.4 };
  assert.deepEqual(await facts(fields), [{ fields: ['title', 'text'], ...settings }, ['title', 'text']]);
  assert.deepEqual(await facts(words), [{ fields: ['contents'], ...settings }, ['contents']]);
  assert.deepEqual(await facts(dense), [null, null]);
});

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isOfQuery } from '../../../src/search/calls/query-errors.ts';
import { type OpenRetrieverOptions, openRetriever } from '../../../src/search/opening/open-retriever.ts';
import type { ServerConfig } from '../../../src/server/server-config.ts';
import { ServerRetriever } from '../../../src/stores/trawl-server/server-retriever.ts';
import { fileFolder, runTrawl } from '../../cli/run-trawl.ts';
import { FakeReranker } from '../../helpers/fake-reranker.ts';
import { buildSampleIndex } from '../../helpers/sample-index.ts';
import { serveRetriever } from '../../training/replay/recorded-server.ts';
import { proxyTo } from './proxy.ts';

const folder = await fileFolder();
const index = await buildSampleIndex(folder);

/** An address whose server is replaced by another one over the same index. */
async function replaced(t: TestContext, options: readonly OpenRetrieverOptions[], view?: string) {
  const urls: string[] = [];
  for (const each of options) {
    const retriever = await openRetriever(index, { encoderThreads: 1, ...each });
    t.after(() => retriever.close());
    urls.push(await serveRetriever(t, retriever));
  }
  let now = 0;
  const proxy = await proxyTo(t, () => urls[now]!);
  const server = await ServerRetriever.open(proxy.url, { view });
  return { server, replace: (by: number) => (now = by) };
}

class ModelOf extends FakeReranker {
  override readonly info;

  constructor(sha256: string) {
    super();
    this.info = { name: 'same-name', maxTokens: 512, sha256 };
  }
}

test('after a restart with another reranker of the same name, its scores are refused', async (t) => {
  const options = ['a', 'a', 'b'].map((sha256) => ({ reranker: new ModelOf(sha256) }));
  const { server, replace } = await replaced(t, options);
  const call = { lists: [{ query: 'a bridge', passages: ['a', 'bb'] }] };
  const before = await server.rerank(call);
  replace(1);
  assert.deepEqual(await server.rerank(call), before, 'the same reranker in a new process');
  replace(2);
  await assert.rejects(server.rerank(call), { code: 'INDEX_CHANGED', message: /reranker/ });
});

test('a view of the same name and size with other passages is refused, for hits and passages', async (t) => {
  const block = (id: string): OpenRetrieverOptions => {
    const file = join(folder, `${id}.txt`);
    writeFileSync(file, `${id}\n`);
    return { views: [{ name: 'train', blockIds: [file] }] };
  };
  const { server, replace } = await replaced(t, [block('s-0002'), block('s-0002'), block('s-0003')], 'train');
  assert.match(server.server.viewSha256 ?? '', /^[0-9a-f]{64}$/);
  const hits = { queries: ['a bridge'], k: 3 };
  const passages = { by: 'row', keys: ['1'], limit: 1 } as const;
  replace(1);
  await server.retrieve(hits);
  await server.find(passages);
  replace(2);
  await assert.rejects(server.retrieve(hits), { code: 'INDEX_CHANGED', message: /passages in a view/ });
  await assert.rejects(server.find(passages), { code: 'INDEX_CHANGED' });
  await assert.rejects(server.score({ queries: [{ query: 'a', rows: [1] }], mode: 'dense', maxRank: 0 }), {
    code: 'INDEX_CHANGED',
  });
});

/** The sample index here, and at a server with these limits, behind a proxy that counts requests. */
async function limited(t: TestContext, config: Partial<ServerConfig>, maxRerankTokens?: number) {
  const here = await openRetriever(index, { encoderThreads: 1, reranker: new FakeReranker(), maxRerankTokens });
  t.after(() => here.close());
  const proxy = await proxyTo(t, await serveRetriever(t, here, config));
  const server = await ServerRetriever.open(proxy.url, { attempts: 2, firstWaitMs: 1, maxWaitMs: 1 });
  const count = (path: string): number => proxy.requests.filter((request) => request.path === path).length;
  return { here, server, count };
}

test('passages over --max-queries are asked for in halves', async (t) => {
  const { here, server, count } = await limited(t, { maxQueries: 40 });
  for (const call of [
    { by: 'row', keys: Array.from({ length: 200 }, (_, i) => String(i)), limit: 1 },
    { by: 'id', keys: Array.from({ length: 90 }, (_, i) => `s-${String(i).padStart(4, '0')}`), limit: 4 },
  ] as const) {
    const rowsOf = async (source: typeof here | typeof server) =>
      (await source.find(call)).found.map((list) => list.map(({ row }) => row));
    assert.deepEqual(await rowsOf(server), await rowsOf(here));
  }
  assert.ok(count('/v1/passages') > 8);
});

test('passages to rerank over the limits of body and tokens are sent in halves, and scores keep their order', async (t) => {
  const passages = Array.from({ length: 300 }, (_, i) => 'x'.repeat(1 + ((i * 37) % 90)));
  const lists = [{ query: 'a bridge', passages }];
  for (const [config, tokens] of [
    [{ maxBodyBytes: 4_000 }, undefined],
    [{}, 3_000],
  ] as const) {
    const { server, count } = await limited(t, config, tokens);
    const [outcome] = (await server.rerank({ lists })).outcomes;
    assert.ok(outcome?.ok);
    assert.deepEqual(
      [...outcome.scores],
      passages.map(({ length }) => length),
    );
    assert.ok(count('/v1/rerank') > 2, `${count('/v1/rerank')} requests`);
  }
  const { server } = await limited(t, { maxBodyBytes: 4_000 });
  const huge = [{ query: 'a bridge', passages: ['x'.repeat(10_000)] }];
  await assert.rejects(server.rerank({ lists: huge }), { code: 'BODY_TOO_LARGE' });
});

test("more ties than Pyserini's order compares are an error of that query alone, also over HTTP", async (t) => {
  const corpus = join(folder, 'ties.jsonl');
  const ties = join(folder, 'ties');
  const rows = Array.from({ length: 100_050 }, (_, i) => `{"id":"${i}","contents":"${i < 3 ? 'rare' : 'common'}"}`);
  writeFileSync(corpus, rows.join('\n'));
  const built = await runTrawl(['index', corpus, '--out', ties, '--bm25', '--quiet']);
  assert.equal(built.code, 0, built.stderr);
  const here = await openRetriever(ties, { encoderThreads: 1 });
  t.after(() => here.close());
  const server = await ServerRetriever.open(await serveRetriever(t, here));
  const call = { queries: ['common', 'rare'], k: 2, mode: 'bm25', bm25Order: 'pyserini' } as const;
  for (const source of [here, server]) {
    const [common, rare] = (await source.retrieve(call)).outcomes;
    assert.ok(common?.ok === false && rare?.ok === true);
    assert.equal(common.error.code, 'NOT_SUPPORTED');
    assert.ok(isOfQuery(common.error), 'a run searches for the other queries');
  }
});

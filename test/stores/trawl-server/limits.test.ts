import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import type { ServerConfig } from '../../../src/server/server-config.ts';
import { ServerRetriever } from '../../../src/stores/trawl-server/server-retriever.ts';
import { fileFolder } from '../../cli/run-trawl.ts';
import { FakeReranker } from '../../helpers/fake-reranker.ts';
import { buildSampleIndex } from '../../helpers/sample-index.ts';
import { serveRetriever } from '../../training/replay/recorded-server.ts';
import { proxyTo } from './proxy.ts';

const index = await buildSampleIndex(join(await fileFolder()));

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

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type OpenRetrieverOptions, openRetriever } from '../../../src/search/opening/open-retriever.ts';
import { ServerRetriever } from '../../../src/stores/trawl-server/server-retriever.ts';
import { fileFolder } from '../../cli/run-trawl.ts';
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

import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import { buildApp } from '../../../src/server/app.ts';
import { listen } from '../../../src/server/connections/listen.ts';
import { IndexRegistry } from '../../../src/server/indexes/index-registry.ts';
import { ServerMetrics } from '../../../src/server/metrics/server-metrics.ts';
import { fileFolder, runTrawl, SAMPLE_PASSAGES } from '../../cli/run-trawl.ts';
import { withoutBrowser } from './browser.ts';

const loaded = loadKernel();
export const skip = withoutBrowser !== false ? withoutBrowser : loaded.ok ? false : loaded.reason;

/** A document of three passages, and a passage that a page must not run. */
const MORE = [
  ...[
    'The Charles Bridge crosses the Vltava in Prague. Its construction began in 1357 under King Charles IV.',
    'The bridge replaced the old Judith Bridge, which a flood destroyed in 1342.',
    'Thirty statues of saints stand on the bridge, most of them from around 1700.',
  ].map((text, i) => ({ id: `c-${i}`, title: 'Charles Bridge of Prague', text, source: 'wiki' })),
  {
    id: 'x-1',
    title: '<img src=x onerror=alert(1)>',
    text: '<script>alert(2)</script> hostile bridge &amp; "quotes"',
    source: 'wiki',
  },
];

/** A server of two indexes of the sample corpus for all tests of the file: `sample` with vectors and words, `dense` without words in three shards. */
export function pageServer(): { readonly url: string } {
  const server = { url: '' };
  let app: FastifyInstance | undefined;
  let holder: IndexRegistry | undefined;
  before(async () => {
    if (skip !== false) return;
    const folder = await fileFolder();
    const corpus = join(folder, 'corpus.jsonl');
    const rows = readFileSync(SAMPLE_PASSAGES, 'utf8')
      .trim()
      .split('\n')
      .map((line, i) => ({ ...(JSON.parse(line) as object), source: i % 2 === 0 ? 'wiki' : 'news' }));
    await writeFile(corpus, [...rows, ...MORE].map((row) => `${JSON.stringify(row)}\n`).join(''));
    const build = (name: string, ...options: string[]): Promise<unknown> =>
      runTrawl(['index', corpus, '--out', join(folder, name), '--model', 'token-average-256', '--quiet', ...options]);
    await Promise.all([build('sample', '--bm25', '--column', 'source:string'), build('dense', '--shard-rows', '100')]);
    const indexes = ['sample', 'dense'].map((name) => ({ name, folder: join(folder, name) }));
    holder = IndexRegistry.opening(indexes, (name) => openRetriever(join(folder, name), { encoderThreads: 1 }));
    await holder.open();
    app = buildApp(holder, { metrics: new ServerMetrics({ process: true }) });
    server.url = await listen(app, { host: '127.0.0.1', port: 0 });
  });
  after(async () => {
    app?.server.closeAllConnections();
    await app?.close();
    await holder?.close();
  });
  return server;
}

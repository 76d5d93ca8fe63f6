import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { askServer } from '../../../evaluation/systems/ask-server.ts';
import { SEARCH_DIALECTS } from '../../../src/server/dialects/dispatch.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const SEARCH_R1 = SEARCH_DIALECTS.find(({ name }) => name === 'search-r1')!;
const QUERIES = ['quick', 'slow', 'quick', 'quick'].map((text, i) => ({ id: `q${i}`, text }));

/** A server that never answers the query `slow`. `asked`: the queries so far. */
async function startServer(t: TestContext): Promise<{ readonly url: string; readonly asked: string[] }> {
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const [query] = (JSON.parse(body) as { queries: string[] }).queries;
    asked.push(query!);
    if (query === 'slow') return;
    response.end(JSON.stringify({ result: [[{ document: { id: '1', contents: 'A title\nA text.' }, score: 1 }]] }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

test('a passage that the check refuses ends the other requests, and no further one is sent', async (t) => {
  const { url, asked } = await startServer(t);
  let checked = 0;
  const refused = new Error('a refused passage');
  const check = (): void => {
    // The first passage is that of the trial request.
    if (++checked === 2) throw refused;
  };
  const options = { k: 1, concurrency: 2, queriesPerRequest: 1, check };
  await assert.rejects(askServer(SEARCH_R1, url, QUERIES, options), (error) => error === refused);
  assert.equal(asked.filter((query) => query === 'quick').length, 2);
});

test('a passage of the trial request that the check refuses does not count as a server of another dialect', async (t) => {
  const { url } = await startServer(t);
  const refused = new Error('a refused passage');
  const check = (): void => {
    throw refused;
  };
  const options = { k: 1, concurrency: 2, queriesPerRequest: 1, check };
  await assert.rejects(askServer(SEARCH_R1, url, QUERIES, options), (error) => error === refused);
});

test('asking that is interrupted is cancelled, whatever the reason of the abort', async (t) => {
  const { url, asked } = await startServer(t);
  const stop = new AbortController();
  const asking = askServer(SEARCH_R1, url, QUERIES, {
    k: 1,
    concurrency: 1,
    queriesPerRequest: 1,
    signal: stop.signal,
  });
  const cancelled = assert.rejects(asking, trawlError('CANCELLED'));
  while (asked.at(-1) !== 'slow') await new Promise((next) => setTimeout(next, 2));
  // As the commands do.
  stop.abort('SIGINT');
  await cancelled;
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServerConfig } from '../../src/server/server-config.ts';
import { sampleServer } from '../helpers/sample-server.ts';

const server = await sampleServer();

/** Exceeds the token limit alone, so that `tail` removes the whole query after it. */
const QUESTION = 'Which of the many long rivers of the world is the one that is asked for here? '.repeat(40);
const QUERY = 'Who designed the Brooklyn Bridge?';
const OTHER = 'What is the capital of Finland?';

interface Scored {
  readonly score: number;
}

async function postJson(url: string, body: object): Promise<unknown> {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.equal(response.status, 200);
  return response.json();
}

/** Requests with a query and its question. The scores show what was embedded. */
const WAYS: Readonly<Record<string, (url: string, query: string, truncate?: string) => Promise<readonly number[]>>> = {
  async 'search-r1'(url, query, truncate) {
    const body = { queries: [query], questions: [QUESTION], return_scores: true, truncate };
    const { result } = (await postJson(`${url}/retrieve`, body)) as { result: Scored[][] };
    return result[0]!.map(({ score }) => score);
  },
  async skyrl(url, query, truncate) {
    const body = { query, question: QUESTION, return_scores: true, truncate };
    const { result } = (await postJson(`${url}/retrieve`, body)) as { result: Scored[][] };
    return result[0]!.map(({ score }) => score);
  },
  async native(url, query, truncate) {
    const body = { queries: [{ question: QUESTION, query }], truncate };
    const { results } = (await postJson(`${url}/v1/search`, body)) as { results: { hits: Scored[] }[] };
    return results[0]!.hits.map(({ score }) => score);
  },
  async mcp(url, query) {
    const params = { name: 'search', arguments: { query, question: QUESTION, k: 3 } };
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    const { result } = (await postJson(`${url}/mcp`, call)) as {
      result: { structuredContent: { results: Scored[] } };
    };
    return result.structuredContent.results.map(({ score }) => score);
  },
};

const MCP = { mcp: { hosts: [] } } satisfies Partial<ServerConfig>;

for (const [name, ask] of Object.entries(WAYS)) {
  test(`${name}: a query with a long question is kept with truncate: question, and lost by default`, async () => {
    const usual = await server.serve(MCP);
    assert.deepEqual(await ask(usual, QUERY), await ask(usual, OTHER), 'neither query is embedded');
    const keeping = await server.serve({ ...MCP, truncate: 'question' });
    assert.notDeepEqual(await ask(keeping, QUERY), await ask(keeping, OTHER));
  });
}

for (const name of ['search-r1', 'skyrl', 'native']) {
  const ask = WAYS[name]!;
  test(`${name}: truncate in the request overrides the server's`, async () => {
    const usual = await server.serve({});
    const keeping = await server.serve({ truncate: 'question' });
    assert.deepEqual(await ask(usual, QUERY, 'question'), await ask(keeping, QUERY));
    assert.deepEqual(await ask(keeping, QUERY, 'tail'), await ask(usual, QUERY));
    const response = await fetch(`${usual}/retrieve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"queries": ["a"], "truncate": "head"}',
    });
    assert.equal(response.status, 422);
  });
}

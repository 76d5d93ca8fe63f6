import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, postTo } from './build.ts';

/** The answer of an approximate index. */
const UNPROVED: QueryOutcome = {
  ok: true,
  hits: [{ row: 0, score: 0.5, document: '{"id":"0","contents":"\\"A\\"\\nb"}' }],
  tokens: 1,
  truncated: false,
  text: 'a',
  cut: 'nothing',
  vector: null,
  certificate: { exact: false, rescored: 1 },
};

test('a reply of any dialect says in a header that its hits are not proved, and rLLM’s not that they are exact', async (t) => {
  for (const [outcome, exact, method] of [
    [() => UNPROVED, 'false', 'dense'],
    // Of two queries, the second one is not proved.
    [(_: unknown, i: number) => (i === 1 ? UNPROVED : undefined), 'false', 'dense'],
    [() => undefined, undefined, 'dense_exact'],
  ] as const) {
    const app = build(t, new FakeRetriever({ outcome }), { dialects: ['rllm-legacy'] });
    for (const [path, body] of [
      ['/retrieve', { queries: ['a', 'b'], topk: 3 }],
      ['/v1/search', { queries: ['a', 'b'], k: 3 }],
      ['/batch_search', { query: ['a', 'b'], top_n: 3 }],
    ] as const) {
      const { headers, json, status } = await postTo(app, path, body);
      assert.equal(status, 200);
      assert.equal(headers['x-trawl-exact'], exact, path);
      if (path === '/retrieve') assert.equal((json as { method: string }).method, method);
    }
  }
  for (const dialects of [['rllm'], ['rllm-legacy']]) {
    const app = build(t, new FakeRetriever({ outcome: () => UNPROVED }), { dialects });
    const { json } = await postTo(app, '/retrieve', { query: 'a', k: 3 });
    assert.equal((json as { method: string }).method, 'dense');
  }
});

test('the result of a tool of an assistant says it in its _meta', async (t) => {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const meta = async (outcome: () => QueryOutcome | undefined): Promise<unknown> => {
    const app = build(t, new FakeRetriever({ outcome }), { mcp: { hosts: [], tools: 'trawl' } });
    const params = { name: 'search', arguments: { query: 'a', k: 3 } };
    const { json } = await postTo(app, '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, headers);
    return (json as { result: { _meta?: object } }).result._meta;
  };
  assert.deepEqual(await meta(() => UNPROVED), { 'trawl/exact': false, 'trawl/short': 'inexact=1' });
  assert.equal(await meta(() => undefined), undefined);
});

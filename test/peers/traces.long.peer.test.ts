import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serveIndex } from '../cli/run-trawl.ts';
import { buildSampleIndex } from '../helpers/sample-index.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { startCollector, withoutCollector } from './otel-collector.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

test('an OpenTelemetry Collector gets the spans of a search in the trace of its client', {
  skip: withoutCollector(),
}, async (t) => {
  const collector = await startCollector(t);
  const index = await buildSampleIndex(await tempFolder(t));
  const server = await serveIndex(t, index, ['--trace-to', collector.url]);
  const reply = await fetch(`${server.url}/retrieve`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', traceparent: `00-${TRACE}-${PARENT}-01` },
    body: JSON.stringify({ queries: ['who designed the Eiffel Tower', 'bridge'], topk: 2 }),
  });
  assert.equal(reply.status, 200);
  await reply.arrayBuffer();
  const spans = await collector.spansOf(TRACE, 'POST /retrieve');
  const root = spans.find(({ name }) => name === 'POST /retrieve')!;
  assert.deepEqual([root.parentId, root.kind], [PARENT, 'Server']);
  assert.equal(root.attributes['http.response.status_code'], '200');
  assert.equal(root.attributes['trawl.queries'], '2');
  assert.equal(root.attributes['trawl.request_id'], reply.headers.get('x-request-id'));
  for (const stage of ['parse', 'embed', 'search', 'fetch', 'reply']) {
    const span = spans.find(({ name }) => name === stage);
    assert.equal(span?.parentId, root.id, stage);
  }
  server.child.kill('SIGTERM');
  assert.equal((await server.ended).code, 0);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BoundedRetriever } from '../../../src/search/layers/bounded-retriever.ts';
import { FakeRetriever, untilAborted } from '../../helpers/fake-retriever.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

test('calls above the limit of bytes are refused, and accepted again when others have ended', async () => {
  const controller = new AbortController();
  const inner = new FakeRetriever({ before: (call) => (call.queries[0] === 'stuck' ? untilAborted(call) : undefined) });
  const bounded = new BoundedRetriever(inner, 50_000);
  const { signal } = controller;
  const stuck = Array.from({ length: 60 }, () => bounded.retrieve({ queries: ['stuck'], k: 3, signal }));
  const ended = Promise.allSettled(stuck);
  const { bytes, calls, refused } = bounded.statistics().waiting;
  assert.ok(bytes >= 50_000 && bytes < 70_000, `${bytes} bytes`);
  assert.equal(calls + refused, 60);
  assert.ok(refused > 0 && calls > 2);
  await assert.rejects(bounded.retrieve({ queries: ['late'], k: 1 }), trawlError('OVERLOADED', /Try again later/));
  await assert.rejects(bounded.embed({ inputs: ['late'], inputType: 'query' }), trawlError('OVERLOADED'));
  await assert.rejects(bounded.find({ by: 'id', keys: ['0'], limit: 1 }), trawlError('OVERLOADED'));
  assert.equal(inner.calls.length, calls);
  controller.abort();
  await ended;
  assert.equal(bounded.statistics().waiting.bytes, 0);
  assert.equal((await bounded.retrieve({ queries: ['late'], k: 1 })).outcomes.length, 1);
});

test('a call larger than the limit is accepted when nothing waits', async () => {
  const bounded = new BoundedRetriever(new FakeRetriever(), 1_000);
  const { outcomes } = await bounded.retrieve({ queries: new Array<string>(500).fill('x'.repeat(500)), k: 3 });
  assert.equal(outcomes.length, 500);
  assert.deepEqual(bounded.statistics().waiting, { calls: 0, bytes: 0, maxBytes: 1_000, refused: 0 });
});

test('expected hits are limited to the rows of the index', async () => {
  const controller = new AbortController();
  const bounded = new BoundedRetriever(new FakeRetriever({ before: untilAborted }), 1_000_000);
  const asked = bounded.retrieve({ queries: ['a'], k: 1_000_000, signal: controller.signal });
  assert.ok(bounded.statistics().waiting.bytes < 20_000);
  controller.abort();
  await assert.rejects(asked, trawlError('CANCELLED'));
});

test('the expected size of an answer follows the passages seen', async () => {
  const documents = [`{"id":"0","contents":"${'x'.repeat(50_000)}"}`];
  const bounded = new BoundedRetriever(new FakeRetriever({ documents }), 1_000_000);
  for (let i = 0; i < 40; i++) await bounded.retrieve({ queries: ['a'], k: 1 });
  const asked = bounded.retrieve({ queries: ['a'], k: 1 });
  assert.ok(bounded.statistics().waiting.bytes > 80_000);
  await asked;
});

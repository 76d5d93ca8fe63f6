import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Admission } from '../../src/search/admission.ts';
import type { RetrieveCall, RetrieveResult } from '../../src/search/calls/retrieve-call.ts';
import { Patience } from '../../src/search/calls/retrieve-call.ts';
import { NO_STATISTICS } from '../../src/search/retriever-statistics.ts';
import { FakeRetriever, type FakeRetrieverOptions, untilAborted } from '../helpers/fake-retriever.ts';
import { trawlError } from '../helpers/trawl-error.ts';

function admitted(maxBytes: number, options: FakeRetrieverOptions = {}) {
  const inner = new FakeRetriever(options);
  const admission = new Admission(inner.info, maxBytes, () => NO_STATISTICS);
  const retrieve = async (call: RetrieveCall, isExempt?: () => boolean): Promise<RetrieveResult> => {
    const result = await admission.run('retrieve', call, () => inner.retrieve(call), isExempt);
    const [first] = result.outcomes;
    if (first?.ok === true) admission.observe(first.hits);
    return result;
  };
  return { inner, admission, retrieve };
}

test('calls above the limit of bytes are refused, and accepted again when others have ended', async () => {
  const controller = new AbortController();
  const { inner, admission, retrieve } = admitted(50_000, {
    before: (call) => (call.queries[0] === 'stuck' ? untilAborted(call) : undefined),
  });
  const { signal } = controller;
  const stuck = Array.from({ length: 60 }, () => retrieve({ queries: ['stuck'], k: 3, signal }));
  const ended = Promise.allSettled(stuck);
  const { bytes, calls, refused } = admission.load;
  assert.ok(bytes >= 50_000 && bytes < 70_000, `${bytes} bytes`);
  assert.equal(calls + refused, 60);
  assert.ok(refused > 0 && calls > 2);
  const late = { queries: ['late'], k: 1 };
  await assert.rejects(retrieve(late), trawlError('OVERLOADED', /Try again later/));
  const embed = { inputs: ['late'], inputType: 'query' } as const;
  await assert.rejects(
    admission.run('embed', embed, () => inner.embed(embed)),
    trawlError('OVERLOADED'),
  );
  const find = { by: 'id', keys: ['0'], limit: 1 } as const;
  await assert.rejects(
    admission.run('find', find, () => inner.find(find)),
    trawlError('OVERLOADED'),
  );
  assert.equal(inner.calls.length, calls);
  assert.equal((await retrieve(late, () => true)).outcomes.length, 1, 'an exempt call is not refused');
  controller.abort();
  await ended;
  assert.equal(admission.load.bytes, 0);
  assert.equal((await retrieve(late)).outcomes.length, 1);
});

test('a call larger than the limit is accepted when nothing waits', async () => {
  const { admission, retrieve } = admitted(1_000);
  const { outcomes } = await retrieve({ queries: new Array<string>(500).fill('x'.repeat(500)), k: 3 });
  assert.equal(outcomes.length, 500);
  assert.deepEqual(admission.load, { calls: 0, bytes: 0, maxBytes: 1_000, refused: 0 });
});

test('expected hits are limited to the rows of the index', async () => {
  const controller = new AbortController();
  const { admission, retrieve } = admitted(1_000_000, { before: untilAborted });
  const asked = retrieve({ queries: ['a'], k: 1_000_000, signal: controller.signal });
  assert.ok(admission.load.bytes < 20_000);
  controller.abort();
  await assert.rejects(asked, trawlError('CANCELLED'));
});

test('the expected size of an answer follows the passages seen', async () => {
  const documents = [`{"id":"0","contents":"${'x'.repeat(50_000)}"}`];
  const { admission, retrieve } = admitted(1_000_000, { documents });
  for (let i = 0; i < 40; i++) await retrieve({ queries: ['a'], k: 1 });
  const asked = retrieve({ queries: ['a'], k: 1 });
  assert.ok(admission.load.bytes > 80_000);
  await asked;
});

test('once an index has admitted a request, its later calls are not refused there for their wait', () => {
  const patience = new Patience(100);
  const [busy, idle] = [{}, {}];
  assert.equal(patience.bears(101, busy), false);
  assert.equal(patience.bears(100, idle), true);
  assert.equal(patience.bears(5_000, idle), true);
  assert.equal(patience.bears(101, busy), false);
});

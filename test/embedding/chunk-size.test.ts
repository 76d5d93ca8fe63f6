import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChunkSizer } from '../../src/embedding/chunk-size.ts';

const sizer = () => new ChunkSizer({ query: 32, passage: 512 });

test('before anything is measured a chunk is one text', () => {
  assert.equal(sizer().nextWeight(1e6, 2), 0);
});

test('chunks of a fast model hold many texts, of a slow one few', () => {
  const fast = sizer();
  fast.observe(1000, 1);
  assert.ok(Math.abs(fast.nextWeight(1e9, 2) - 5_000) < 1);
  const slow = sizer();
  slow.observe(1000, 1000);
  assert.ok(Math.abs(slow.nextWeight(1e9, 2) - 5) < 1);
});

test('texts of one length make chunks of 20 ms, so that there are some to run together', () => {
  const each = sizer();
  each.observe(1000, 1);
  assert.ok(Math.abs(each.nextWeight(1e9, 2, true) - 20_000) < 1);
});

test('what texts cost together and apart is learned apart', () => {
  const each = sizer();
  each.observe(1000, 1);
  assert.equal(each.expectedMs(1000), 1, 'for want of a better figure');
  each.observe(1000, 0.5, true);
  each.observe(1000, 1);
  assert.equal(each.expectedMs(1000), 0.5, 'what waits will run together');
  assert.ok(Math.abs(each.nextWeight(1e9, 2) - 5_000) < 1);
  assert.ok(Math.abs(each.nextWeight(1e9, 2, true) - 40_000) < 1);
});

test('a small batch is shared among workers, but not into crumbs', () => {
  const each = sizer();
  each.observe(1000, 1);
  assert.ok(Math.abs(each.nextWeight(8000, 4) - 2000) < 1);
  assert.ok(Math.abs(each.nextWeight(100, 4) - 500) < 1);
});

test('what a text costs ends with the limit, since the rest is cut', () => {
  const each = sizer();
  assert.equal(each.weight('x'.repeat(1e6), 'query'), each.weight('x'.repeat(1e5), 'query'));
  assert.ok(each.weight('x'.repeat(1e6), 'passage') > each.weight('x'.repeat(1e6), 'query'));
  assert.equal(each.weight({ question: 'ab', query: 'c' }, 'query'), each.weight('abc', 'query'));
});

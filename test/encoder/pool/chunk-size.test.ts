import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChunkSizer } from '../../../src/encoder/pool/chunk-size.ts';

const sizer = () => new ChunkSizer();

test('before the first measurement a chunk is one text', () => {
  assert.equal(sizer().nextWeight(1e6, 2), 0);
});

test('chunks of a fast model have many texts, chunks of a slow model few', () => {
  const fast = sizer();
  fast.observe(1000, 1);
  assert.ok(Math.abs(fast.nextWeight(1e9, 2) - 5_000) < 1);
  const slow = sizer();
  slow.observe(1000, 1000);
  assert.ok(Math.abs(slow.nextWeight(1e9, 2) - 5) < 1);
});

test('chunks of texts of equal length take 20 ms, enough for several groups', () => {
  const each = sizer();
  each.observe(1000, 1);
  assert.ok(Math.abs(each.nextWeight(1e9, 2, true) - 20_000) < 1);
});

test('the costs of grouped and of single texts are measured separately', () => {
  const each = sizer();
  each.observe(1000, 1);
  assert.equal(each.expectedMs(1000), 1, 'the cost of single texts, until grouped ones are measured');
  each.observe(1000, 0.5, true);
  each.observe(1000, 1);
  assert.equal(each.expectedMs(1000), 0.5, 'waiting texts are expected to run grouped');
  assert.ok(Math.abs(each.nextWeight(1e9, 2) - 5_000) < 1);
  assert.ok(Math.abs(each.nextWeight(1e9, 2, true) - 40_000) < 1);
});

test('a small batch is split among the workers, into chunks of at least 0.5 ms', () => {
  const each = sizer();
  each.observe(1000, 1);
  assert.ok(Math.abs(each.nextWeight(8000, 4) - 2000) < 1);
  assert.ok(Math.abs(each.nextWeight(100, 4) - 500) < 1);
});

test('characters beyond the token limit cost nothing', () => {
  const each = sizer();
  assert.equal(each.weight('x'.repeat(1e6), 32), each.weight('x'.repeat(1e5), 32));
  assert.ok(each.weight('x'.repeat(1e6), 512) > each.weight('x'.repeat(1e6), 32));
  assert.equal(each.weight({ question: 'ab', query: 'c' }, 32), each.weight('abc', 32));
});

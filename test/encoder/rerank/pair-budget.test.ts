import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkPairBudget } from '../../../src/encoder/rerank/pair-budget.ts';
import { rankByScore } from '../../../src/encoder/rerank/reranker.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

test('the pairs of all lists count, each up to the token limit of the reranker', () => {
  const lists = [
    { query: 'q'.repeat(8), passages: ['p'.repeat(8), 'p'.repeat(100_000)] },
    { query: '', passages: ['p'] },
  ];
  const tokens = 4 + 4 + 512 + 4 + 1;
  checkPairBudget(lists, { name: 'r', maxTokens: 512 }, tokens);
  assert.throws(
    () => checkPairBudget(lists, { name: 'r', maxTokens: 512 }, tokens - 1),
    trawlError('RERANK_TOO_LARGE', new RegExp(`3 pairs .*about ${tokens} tokens; the limit is ${tokens - 1}`)),
  );
  assert.throws(() => checkPairBudget(lists, { name: 'r', maxTokens: null }, tokens), trawlError('RERANK_TOO_LARGE'));
});

test('positions are ranked by score, larger first, equal scores in their order', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -2, max: 2 })), (scores) => {
      const ranked = rankByScore(scores);
      assert.deepEqual(
        [...ranked].sort((a, b) => a.index - b.index),
        scores.map((score, index) => ({ index, score })),
      );
      for (const [i, after] of ranked.slice(1).entries()) {
        const before = ranked[i]!;
        assert.ok(before.score > after.score || (before.score === after.score && before.index < after.index));
      }
    }),
  );
});

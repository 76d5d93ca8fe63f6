import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Gates, refusals } from '../../iteration/gates.ts';
import type { Measures } from '../../iteration/records.ts';

const NONE: Gates = { minRecall: undefined, maxRecallDrop: 0, maxChanged: undefined, maxReplaced: undefined };

function measures(before: number, now: number, more: { mrr?: number; replaced?: number } = {}): Measures {
  const { mrr = 0, replaced = 0 } = more;
  return {
    against: '0'.repeat(32),
    settings: {},
    judged: 10,
    recallK: 10,
    before: { 'recall@10': before, mrr: before },
    now: { 'recall@10': now, mrr },
    answers: { of: 'questions', k: 3, queries: 10, changed: 3, replaced, rbo: 0.8 },
  };
}

const namesOf = (found: Measures, gates: Partial<Gates>): string[] =>
  refusals(found, { ...NONE, ...gates }).map(({ accept }) => accept.split(' ')[0]!);

test('values that are equal but for the rounding of their sums keep a limit', () => {
  // 0.7 - 0.1 is 0.6 - 1e-16 and 0.1 + 0.2 is 0.3 + 4e-17.
  assert.deepEqual(namesOf(measures(0.7, 0.7 - 0.1), { maxRecallDrop: 0.1, minRecall: 0.6 }), []);
  assert.deepEqual(namesOf(measures(0.1 + 0.2, 0.3), {}), []);
  assert.deepEqual(namesOf(measures(0.5, 0.5, { replaced: 0.1 + 0.2 }), { maxReplaced: 0.3, maxChanged: 0.3 }), []);
  assert.deepEqual(namesOf(measures(0.7, 0.599999), { maxRecallDrop: 0.1, minRecall: 0.6 }), [
    '--min-recall',
    '--max-recall-drop',
  ]);
});

test('recall 0 in both indexes is only unknown if no judged passage was found at any rank', () => {
  assert.deepEqual(namesOf(measures(0, 0), {}), ['--max-recall-drop']);
  assert.deepEqual(namesOf(measures(0, 0, { mrr: 0.01 }), {}), []);
  assert.deepEqual(namesOf(measures(0, 0), { maxRecallDrop: 1, minRecall: 0.5 }), ['--min-recall']);
});

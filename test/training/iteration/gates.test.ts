import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Gates, refusals, trialRefusals } from '../../../training/iteration/gates.ts';
import type { Measures, Trial } from '../../../training/iteration/records.ts';

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

test('a trial is refused by its estimate, without one by its bound; where the bound is below, the text says that nothing can help', () => {
  const trial = (value: number | null, bound: number, error: number | null = null): Trial => ({
    against: '0'.repeat(32),
    settings: {},
    judged: 10,
    k: 5,
    estimate: value === null ? null : { value, low: 0, high: 1 },
    bound,
    present: 0.7,
    error,
    pool: 1,
    whole: 2,
    wholeMs: 1,
  });
  const textsOf = (of: Trial, minRecall: number | undefined, maxDrop: number): string[] =>
    trialRefusals(of, { minRecall, maxDrop }).map(({ text }) => text);
  assert.deepEqual(textsOf(trial(0.7, 0.8), 0.7, 0), []);
  assert.deepEqual(textsOf(trial(0.7 - 0.1, 0.8), undefined, 0.1), [], 'rounding does not refuse');
  assert.deepEqual(textsOf(trial(null, 0.69), undefined, 0), [
    'recall@5 of the new model is at most 0.6900, whatever the rest of the index has, and 0.7000 in the served index; at least 0.7000 is ' +
      'required. --triage-max-drop 0.011 accepts it.',
  ]);
  assert.deepEqual(textsOf(trial(0.6, 0.8, -0.02), 0.65, 0.2), [
    'recall@5 of the new model is estimated as 0.6000, and 0.7000 in the served index; at least 0.6500 is required. The same estimate of ' +
      'the present encoder is wrong by -0.0200. --triage-min-recall 0.6 accepts it.',
  ]);
  const both = trialRefusals(trial(0.1, 0.9), { minRecall: 0.5, maxDrop: 0 });
  assert.deepEqual(
    both.map(({ accept }) => accept),
    ['--triage-min-recall 0.1', '--triage-max-drop 0.6'],
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { evaluateRun } from '../../evaluation/evaluate-run.ts';
import { failsWith } from './evaluation-dir.ts';

const hit = (id: string, text?: string) => ({ id, score: 1, ...(text === undefined ? {} : { text }) });

const run = new Map([
  ['q1', [hit('a', 'the answer'), hit('b', 'no')]],
  ['q2', [hit('x', 'no'), hit('y', 'the answer')]],
  ['q3', [hit('z', 'no')]],
  ['other', [hit('a')]],
]);
const judgements = new Map([
  ['q1', new Map([['a', 1]])],
  ['q2', new Map([['y', 1]])],
  ['q4', new Map([['a', 1]])],
  ['other', new Map([['a', 1]])],
]);

test('means are taken over the given queries that have judgements; a query without results counts as 0', () => {
  const result = evaluateRun({ queryIds: ['q1', 'q2', 'q3', 'q4'], run, judgements, cutoffs: [1, 2] });
  assert.deepEqual([result.queries, result.judged, result.unjudged, result.answerable], [4, 3, 1, 0]);
  assert.deepEqual(result.means, {
    'recall@1': 1 / 3,
    'ndcg@1': 1 / 3,
    'mrr@1': 1 / 3,
    'hit@1': 1 / 3,
    'recall@2': 2 / 3,
    'ndcg@2': (1 + 1 / Math.log2(3)) / 3,
    'mrr@2': (1 + 1 / 2) / 3,
    'hit@2': 2 / 3,
    mrr: (1 + 1 / 2) / 3,
  });
  assert.deepEqual(result.perQuery.get('q3'), {});
  assert.equal(result.perQuery.get('q4')?.['recall@2'], 0);
  assert.equal(result.perQuery.has('other'), false);
});

test('answer hits are averaged over the queries with answers', () => {
  const answers = new Map([
    ['q2', ['Answer']],
    ['q3', ['answer']],
    ['q1', []],
  ]);
  const result = evaluateRun({ queryIds: ['q1', 'q2', 'q3'], run, judgements: new Map(), answers, cutoffs: [1, 2] });
  assert.deepEqual([result.judged, result.answerable], [0, 2]);
  assert.deepEqual(result.means, { 'answer_hit@1': 0, 'answer_hit@2': 0.5 });
});

test('answers are refused if the results have no text', () => {
  assert.throws(
    () => evaluateRun({ queryIds: ['other'], run, judgements, answers: new Map([['other', ['x']]]), cutoffs: [1] }),
    failsWith('USAGE', '"other"'),
  );
});

test('without any judgement there are no means instead of NaN', () => {
  assert.deepEqual(evaluateRun({ queryIds: ['q9'], run, judgements, cutoffs: [5] }).means, {});
  assert.deepEqual(evaluateRun({ queryIds: [], run, judgements, cutoffs: [5] }).means, {});
});

for (const k of [0, -1, 1.5, Number.NaN]) {
  test(`a cutoff of ${k} is refused`, () => {
    assert.throws(() => evaluateRun({ queryIds: [], run, judgements, cutoffs: [10, k] }), failsWith('USAGE'));
  });
}

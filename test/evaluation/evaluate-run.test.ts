import assert from 'node:assert/strict';
import { test } from 'node:test';

import { evaluateRun, meansOf, metricsByGroup } from '../../evaluation/evaluate-run.ts';
import { titleKey } from '../../evaluation/read-questions.ts';
import { failsWith } from './evaluation-dir.ts';

const hit = (id: string, text?: string) => ({ id, score: 1, text });

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
    'precision@1': 1 / 3,
    'all_gold@1': 1 / 3,
    'ndcg@1': 1 / 3,
    'map@1': 1 / 3,
    'mrr@1': 1 / 3,
    'hit@1': 1 / 3,
    'recall@2': 2 / 3,
    'precision@2': (1 / 2 + 1 / 2) / 3,
    'all_gold@2': 2 / 3,
    'ndcg@2': (1 + 1 / Math.log2(3)) / 3,
    'map@2': (1 + 1 / 2) / 3,
    'mrr@2': (1 + 1 / 2) / 3,
    'hit@2': 2 / 3,
    mrr: (1 + 1 / 2) / 3,
    map: (1 + 1 / 2) / 3,
    r_precision: 1 / 3,
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
  assert.deepEqual(result.means, {
    'answer_hit@1': 0,
    'answer_hit@2': 0.5,
    'answer_substring@1': 0,
    'answer_substring@2': 0.5,
    'answer_normalised@1': 0,
    'answer_normalised@2': 0.5,
  });
});

test('an answer inside of a word is a substring and not a hit', () => {
  const { means } = evaluateRun({
    queryIds: ['q'],
    run: new Map([['q', [hit('a', 'a party')]]]),
    judgements: new Map(),
    answers: new Map([['q', ['Art']]]),
    cutoffs: [1],
  });
  assert.deepEqual(means, { 'answer_hit@1': 0, 'answer_substring@1': 1, 'answer_normalised@1': 1 });
});

test('pages are judged by title: several passages of a page count once, and passages without title for none', () => {
  const pages = ['Ed_Wood (film)', undefined, 'ed wood (Film)', 'A & B'].map((title, i) => ({
    ...hit(`p${i}`),
    title,
  }));
  const { means, titleJudged, judged } = evaluateRun({
    queryIds: ['q', 'unjudged'],
    run: new Map([['q', pages]]),
    judgements: new Map(),
    titleJudgements: new Map([['q', new Map(['Ed Wood (film)', 'A &amp; B'].map((title) => [titleKey(title), 1]))]]),
    cutoffs: [1, 3, 4],
  });
  assert.deepEqual([titleJudged, judged], [1, 0]);
  assert.deepEqual(
    ['title_recall', 'title_all_gold', 'title_hit'].map((name) => [1, 3, 4].map((k) => means[`${name}@${k}`])),
    [
      [1 / 2, 1 / 2, 1],
      [0, 0, 1],
      [1, 1, 1],
    ],
  );
});

test('titles are the same with and without the quotes around them of the published corpora', () => {
  for (const title of ['Ed Wood', 'Ed_Wood', '"Heroes" (song)', 'Say "Yes"'])
    assert.equal(titleKey(`"${title}"`), titleKey(title), title);
  assert.equal(titleKey('&quot;Ed Wood&quot;'), 'ed wood');
  assert.equal(titleKey('""'), '');
  assert.equal(titleKey('"'), '"');
});

test('titles that differ in accents are different pages', () => {
  assert.notEqual(titleKey('Pele'), titleKey('Pelé'));
  assert.equal(titleKey('Pele\u0301'), titleKey('Pelé'));
});

test('means by group leave out queries without a group', () => {
  const { perQuery } = evaluateRun({ queryIds: ['q1', 'q2', 'q4'], run, judgements, cutoffs: [1] });
  const groups = metricsByGroup(perQuery, (id) => (id === 'q4' ? undefined : id === 'q1' ? 'bridge' : 'comparison'));
  assert.deepEqual(
    Array.from(groups, ([group, members]) => [group, members.size, meansOf(members.values())['recall@1']]),
    [
      ['bridge', 1, 1],
      ['comparison', 1, 0],
    ],
  );
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

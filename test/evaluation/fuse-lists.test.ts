import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evaluateRun } from '../../evaluation/evaluate-run.ts';
import { fuseLists } from '../../evaluation/run.ts';

const list = (...ids: string[]) => ids.map((id, i) => ({ id, score: 10 - i, title: `Page ${id}`, text: `text ${id}` }));
const ids = (passages: readonly { readonly id: string }[]) => passages.map(({ id }) => id).join('');

test('lists are fused by reciprocal rank: a passage of both is first, and equal scores stay in the order of the lists', () => {
  const fused = fuseLists([list('a', 'b', 'c'), list('d', 'c', 'e')], 10);
  assert.equal(ids(fused), 'cadbe');
  assert.equal(fused[0]!.score, 1 / 63 + 1 / 62);
  assert.deepEqual([fused[0]!.title, fused[0]!.text], ['Page c', 'text c']);
  assert.equal(ids(fuseLists([list('a', 'b', 'c'), list('d', 'c', 'e')], 2)), 'ca');
});

test('one list stays as it is, and no list is an empty one', () => {
  assert.deepEqual(fuseLists([list('a', 'b')], 5), list('a', 'b'));
  assert.equal(ids(fuseLists([list('a', 'b')], 1)), 'a');
  assert.deepEqual(fuseLists([], 5), []);
  assert.equal(ids(fuseLists([[], list('a')], 5)), 'a');
});

test('a passage that a list has twice counts once, and the ranks behind it stay', () => {
  const fused = fuseLists([list('a', 'a', 'b'), list('c')], 10);
  assert.deepEqual(
    fused.map(({ id, score }) => [id, score]),
    [
      ['a', 1 / 61],
      ['c', 1 / 61],
      ['b', 1 / 63],
    ],
  );
});

test('the union counts the first k passages of every query; a question with one query has its own list', () => {
  const lists = new Map([['q', [list('a', 'x'), list('y', 'b'), []]]]);
  const { means, perQuery } = evaluateRun({
    queryIds: ['q', 'r', 'none'],
    run: new Map([
      ['q', fuseLists(lists.get('q')!, 2)],
      ['r', list('b')],
    ]),
    lists,
    judgements: new Map([
      [
        'q',
        new Map([
          ['a', 1],
          ['b', 1],
          ['x', 0],
        ]),
      ],
      ['r', new Map([['b', 1]])],
      ['none', new Map([['b', 1]])],
    ]),
    titleJudgements: new Map([['q', new Map([['page b', 1]])]]),
    answers: new Map([['q', ['text b']]]),
    cutoffs: [1, 2],
  });
  const union = Object.entries(perQuery.get('q')!).filter(([name]) => name.startsWith('union'));
  assert.deepEqual(Object.fromEntries(union), {
    'union_recall@1': 0.5,
    'union_all_gold@1': 0,
    'union_title_recall@1': 0,
    'union_title_all_gold@1': 0,
    'union_answer_hit@1': 0,
    'union_recall@2': 1,
    'union_all_gold@2': 1,
    'union_title_recall@2': 1,
    'union_title_all_gold@2': 1,
    'union_answer_hit@2': 1,
  });
  assert.equal(means['union_recall@2'], 2 / 3);
  const single = evaluateRun({
    queryIds: ['r'],
    run: new Map(),
    judgements: new Map([['r', new Map([['b', 1]])]]),
    cutoffs: [1],
  });
  assert.ok(!('union_recall@1' in single.means));
});

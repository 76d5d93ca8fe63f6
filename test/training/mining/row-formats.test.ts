import { test } from 'node:test';
import type { MinedQuery } from '../../../training/mining/mined-query.ts';
import { ROW_FORMATS, type RowFormatName } from '../../../training/mining/row-formats.ts';
import assert from '../../helpers/assert.ts';
import { miningQuery, passage } from './mining-fixtures.ts';

const MINED: MinedQuery = {
  query: miningQuery({
    id: 'train_7',
    query: 'designer',
    history: ['bridge'],
    round: 2,
    dataset: 'hotpotqa',
    answers: ['Roebling'],
  }),
  group: 'group',
  text: 'Who built the bridge? [SEP] designer',
  positives: [
    passage('p1', 'one', { title: 'P', rank: 2, score: 0.75 }),
    passage('p2', 'two', { rank: null, score: 0.5 }),
  ],
  negatives: [
    passage('n1', 'three', { title: 'N', rank: 1, score: 0.25 }),
    passage('n2', 'four', { rank: 4, score: 0.125 }),
  ],
};
function fieldsOf(format: RowFormatName, outputScores = false, mined = MINED): readonly object[] {
  return ROW_FORMATS[format].rows(mined, { numNegatives: 2, outputScores }).map(({ fields }) => fields);
}

const ANCHOR = MINED.text;
const P1 = '"P"\none';
const N1 = '"N"\nthree';

test('triplet: a row for each positive and negative, columns in the order of the inputs', () => {
  assert.deepEqual(fieldsOf('triplet'), [
    { anchor: ANCHOR, positive: P1, negative: N1 },
    { anchor: ANCHOR, positive: P1, negative: 'four' },
    { anchor: ANCHOR, positive: 'two', negative: N1 },
    { anchor: ANCHOR, positive: 'two', negative: 'four' },
  ]);
  assert.deepEqual(Object.keys(fieldsOf('triplet', true)[1]!), ['anchor', 'positive', 'negative', 'scores']);
  assert.deepEqual(fieldsOf('triplet', true)[1], {
    anchor: ANCHOR,
    positive: P1,
    negative: 'four',
    scores: [0.75, 0.125],
  });
});

test('n-tuple: a row for each positive with a column for each negative', () => {
  assert.deepEqual(fieldsOf('n-tuple', true), [
    { anchor: ANCHOR, positive: P1, negative_1: N1, negative_2: 'four', scores: [0.75, 0.25, 0.125] },
    { anchor: ANCHOR, positive: 'two', negative_1: N1, negative_2: 'four', scores: [0.5, 0.25, 0.125] },
  ]);
  assert.ok(ROW_FORMATS['n-tuple'].needsAllNegatives);
});

test('labeled-pair: positives always, negatives once a query', () => {
  assert.deepEqual(fieldsOf('labeled-pair'), [
    { anchor: ANCHOR, text: P1, label: 1 },
    { anchor: ANCHOR, text: 'two', label: 1 },
    { anchor: ANCHOR, text: N1, label: 0 },
    { anchor: ANCHOR, text: 'four', label: 0 },
  ]);
  assert.deepEqual(fieldsOf('labeled-pair', true)[3], { anchor: ANCHOR, text: 'four', score: 0.125 });
});

test('labeled-list: a row for each positive with lists', () => {
  assert.deepEqual(fieldsOf('labeled-list')[1], { anchor: ANCHOR, texts: ['two', N1, 'four'], labels: [1, 0, 0] });
  assert.deepEqual(fieldsOf('labeled-list', true)[1], {
    anchor: ANCHOR,
    texts: ['two', N1, 'four'],
    scores: [0.5, 0.25, 0.125],
  });
});

test('tevatron: passages with title and text', () => {
  assert.deepEqual(fieldsOf('tevatron'), [
    {
      query_id: 'train_7',
      query: ANCHOR,
      positive_passages: [
        { docid: 'p1', title: 'P', text: 'one', rank: 2, score: 0.75 },
        { docid: 'p2', title: '', text: 'two', rank: null, score: 0.5 },
      ],
      negative_passages: [
        { docid: 'n1', title: 'N', text: 'three', rank: 1, score: 0.25 },
        { docid: 'n2', title: '', text: 'four', rank: 4, score: 0.125 },
      ],
    },
  ]);
});

test('tevatron-ids: ids in place of texts', () => {
  assert.deepEqual(fieldsOf('tevatron-ids'), [
    {
      query_id: 'train_7',
      query_text: ANCHOR,
      positive_document_ids: ['p1', 'p2'],
      negative_document_ids: ['n1', 'n2'],
      positive_scores: [0.75, 0.5],
      negative_scores: [0.25, 0.125],
    },
  ]);
});

test('agentic-r: a row for each positive, which alone has the scores of a positive', () => {
  const row = {
    dataset: 'hotpotqa',
    query_id: 'train_7',
    question: 'Who built the bridge?',
    round_index: 2,
    history_queries: ['bridge'],
    query_text: 'designer',
    passage_ids: ['p2', 'n1', 'n2'],
    scores: [
      { em: 1, local_utility: 1 },
      { em: 0, local_utility: 0 },
      { em: 0, local_utility: 0 },
    ],
  };
  const [first, second] = fieldsOf('agentic-r');
  assert.deepEqual(first, { ...row, passage_ids: ['p1', 'n1', 'n2'] });
  assert.deepEqual(second, row);
  const [plain] = fieldsOf('agentic-r', false, { ...MINED, query: miningQuery() });
  const question = 'Who built the bridge?';
  assert.deepEqual(plain, {
    ...row,
    ...{ dataset: '', query_id: 'q', question, round_index: 1, history_queries: [], query_text: question },
    passage_ids: ['p1', 'n1', 'n2'],
  });
});

test('flagembedding: lists of texts, scores only if all are known', () => {
  const [row] = fieldsOf('flagembedding') as Record<string, unknown>[];
  assert.deepEqual(row, {
    query: ANCHOR,
    pos: [P1, 'two'],
    neg: [N1, 'four'],
    pos_scores: [0.75, 0.5],
    neg_scores: [0.25, 0.125],
    pos_id: ['p1', 'p2'],
    neg_id: ['n1', 'n2'],
    query_id: 'train_7',
  });
  const unknown = { ...MINED, positives: [passage('p1', 'one')] };
  const [without] = fieldsOf('flagembedding', false, unknown) as Record<string, unknown>[];
  assert.equal('pos_scores' in without! || 'neg_scores' in without!, false);
});

test('dpr: an array of objects, the embedded text as question', () => {
  assert.ok(ROW_FORMATS.dpr.isArray);
  assert.deepEqual(fieldsOf('dpr'), [
    {
      question: ANCHOR,
      answers: ['Roebling'],
      positive_ctxs: [
        { title: 'P', text: 'one', passage_id: 'p1', rank: 2, score: 0.75 },
        { title: '', text: 'two', passage_id: 'p2', rank: null, score: 0.5 },
      ],
      negative_ctxs: [],
      hard_negative_ctxs: [
        { title: 'N', text: 'three', passage_id: 'n1', rank: 1, score: 0.25 },
        { title: '', text: 'four', passage_id: 'n2', rank: 4, score: 0.125 },
      ],
      query_id: 'train_7',
    },
  ]);
});

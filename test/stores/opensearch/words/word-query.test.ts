import assert from 'node:assert/strict';
import { test } from 'node:test';
import { termWeight } from '../../../../src/engine/lexical/bm25.ts';
import { bestFields, type LexicalQuery } from '../../../../src/engine/lexical/lexical-query.ts';
import { RowBitmap } from '../../../../src/engine/row-bitmap.ts';
import { rowQuery } from '../../../../src/stores/opensearch/row-query.ts';
import { sentBoost, wordQuery } from '../../../../src/stores/opensearch/words/word-query.ts';
import { trawlError } from '../../../helpers/trawl-error.ts';

const OPTIONS = {
  analyse: (text: string) => text.split(' ').filter((term) => term !== ''),
  parameters: { k1: 0.9, k1Factor: true },
  hasFactor: true,
  rowsQuery: (rows: RowBitmap) => rowQuery({ type: 'in', rows: [...rows] }),
};

const sent = (query: LexicalQuery) => wordQuery(query, OPTIONS);
const term = (field: string, value: string, boost = 1) => ({ term: { [`words_${field}`]: { value, boost } } });

test('a text is one clause for each different word, with the number of times as its boost', () => {
  assert.deepEqual(sent({ type: 'match', field: 'contents', text: 'river a river' }), {
    query: {
      bool: {
        must: [],
        should: [term('contents', 'river', 2), term('contents', 'a')],
        filter: [],
        must_not: [],
        minimum_should_match: 1,
        boost: 1,
      },
    },
    terms: 2,
    isScored: true,
    isExact: true,
  });
  assert.deepEqual(sent({ type: 'match', field: 'contents', text: 'river' }).query, term('contents', 'river'));
  assert.deepEqual(sent({ type: 'match', field: 'contents', text: '' }).query, { match_none: {} });
  for (const text of ['', 'river', 'river a'])
    assert.equal(sent(bestFields(text, ['title', 'text'], { weights: { title: 2 } })).isExact, true, text);
});

test('two fields are a dis_max, and a field of weight 0 is not sent', () => {
  const both = bestFields('x', ['title', 'text'], { tieBreaker: 0.5, weights: { title: 3 } });
  assert.deepEqual(sent(both).query, {
    dis_max: { queries: [term('title', 'x', 3), term('text', 'x')], tie_breaker: 0.5, boost: 1 },
  });
  assert.deepEqual(sent(bestFields('x', ['title', 'text'], { weights: { title: 0 } })).query, term('text', 'x'));
});

test('a tree that is deeper than that of a text is not said to have exact scores', () => {
  const must = [bestFields('a b', ['text']), bestFields('c d', ['title'])];
  assert.equal(sent({ type: 'bool', must }).isExact, false);
});

test('where scores do not count, words have no boost and k1 does not matter', () => {
  const { query, isScored } = sent({
    type: 'constant-score',
    query: { type: 'term', field: 'text', term: 'x' },
    boost: 2,
  });
  assert.deepEqual(query, { constant_score: { filter: { term: { words_text: { value: 'x' } } }, boost: 2 } });
  assert.equal(isScored, false);
});

test('rows with scores of their own are scored by a table, and there are at most 4,096', () => {
  const rows = new RowBitmap(10_000);
  rows.add(3);
  rows.add(7);
  const { query } = sent({ type: 'rows', rows, scores: Float32Array.of(0.5, 2) });
  const { params } = (query as { script_score: { script: { params: object } } }).script_score.script;
  assert.deepEqual(params, { scores: { 3: 0.5, 7: 2 } });
  const many = rows.complement();
  assert.throws(
    () => sent({ type: 'rows', rows: many, scores: new Float32Array(many.count()) }),
    trawlError('NOT_SUPPORTED', /9998 passages with scores.*up to 4096/),
  );
});

test('more words than OpenSearch takes are refused here, with the limit', () => {
  const text = Array.from({ length: 1_025 }, (_, i) => `w${i}`).join(' ');
  assert.throws(
    () => sent({ type: 'match', field: 'text', text }),
    trawlError('INVALID_REQUEST', /more than 1024 different words/),
  );
});

const { fround } = Math;
const COUNTS = { documentFrequency: 7, documents: 4_937 };

/** What OpenSearch makes of a boost: the weight of the term. */
function weightThere(sent: number, outer: number, k1: number, hasFactor: boolean): number {
  const boost = fround(outer * sent);
  return termWeight({ k1, b: 0, k1Factor: hasFactor }, boost, COUNTS);
}

test('the boost that is sent gives the weight of Trawl to the bit, with and without the factor k1 + 1 on each side', () => {
  for (const k1 of [0, 0.5, 0.82, 0.9, 1.2, 2]) {
    for (const hasFactor of [false, true]) {
      for (const k1Factor of [false, true]) {
        for (const [boost, outer] of [
          [1, 1],
          [2, 1],
          [7, 1],
          [0.25, 1],
          [1, 2],
          [3, 0.5],
          [1e-3, 1],
        ] as const) {
          const sent = sentBoost(boost, outer, { parameters: { k1, k1Factor }, hasFactor });
          const wanted = termWeight({ k1, b: 0, k1Factor }, fround(outer * fround(boost)), COUNTS);
          const got = weightThere(sent.boost, outer, k1, hasFactor);
          if (sent.isExact) assert.equal(got, wanted, JSON.stringify({ k1, hasFactor, k1Factor, boost, outer }));
          else assert.ok(Math.abs(got - wanted) <= Math.abs(wanted) * 2 ** -22);
        }
      }
    }
  }
});

test('with the usual k1, words that a query has up to 44 times have exact weights; of the rest, those that have none are said', () => {
  for (const k1 of [0.9, 1.2]) {
    const inexact = Array.from({ length: 64 }, (_, i) => i + 1).filter(
      (times) => !sentBoost(times, 1, { parameters: { k1, k1Factor: false }, hasFactor: true }).isExact,
    );
    assert.deepEqual(inexact, k1 === 0.9 ? [63] : [45, 63]);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { termWeight } from '../../../../src/engine/lexical/bm25.ts';
import { sentBoost } from '../../../../src/stores/opensearch/words/word-boost.ts';

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

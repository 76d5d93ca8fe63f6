import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { overlapAt, type RankedList, rankBiasedOverlap } from '../../../training/replay/rank-biased-overlap.ts';

/** A list with falling scores; `(` and `)` enclose a tie. */
function list(text: string): RankedList {
  const passages: string[] = [];
  const scores: number[] = [];
  let tied = false;
  let score = 1000;
  for (const sign of text) {
    if (sign === '(') tied = true;
    else if (sign === ')') tied = false;
    else if (sign !== ' ') {
      passages.push(sign);
      scores.push(score);
    }
    if (!tied) score--;
  }
  return { passages, scores };
}

function close(actual: number, expected: number): void {
  assert.ok(Math.abs(actual - expected) < 1e-12, `${actual} is not ${expected}`);
}

test('RBO of lists without ties is that of equation 32, worked out by hand', () => {
  // Agreements 1, 1/2, 1: (1 − p)/p · (p + p²/2 + p³) + p³ with p = 1/2.
  close(rankBiasedOverlap(list('abc'), list('acb'), 0.5), 0.5 + 0.125 + 0.125 + 0.125);
  // Agreements 0, 1 with p = 0.9.
  close(rankBiasedOverlap(list('ab'), list('ba'), 0.9), (0.1 / 0.9) * 0.81 + 0.81);
  close(rankBiasedOverlap(list('abc'), list('abc'), 0.9), 1);
  close(rankBiasedOverlap(list('abc'), list('xyz'), 0.9), 0);
});

test('RBO of lists of unequal length goes on below the shorter one with the agreement at its end', () => {
  // Agreements 1, 1 in the short list, then (2 + 1 · 1) / 3.
  close(rankBiasedOverlap(list('ab'), list('abc'), 0.9), 1);
  // Short list a x: agreements 1, 1/2. At depth 3, x is found: 2 seen + 1/2 · 1 unseen of 3.
  // (1 − p)/p · (p + p²/2 + p³ · 5/6) + p³ · 5/6 with p = 1/2: 0.5 + 0.125 + 5/48 + 5/48.
  close(rankBiasedOverlap(list('ax'), list('abx'), 0.5), 0.5 + 0.125 + 10 / 48);
  close(rankBiasedOverlap(list('abx'), list('ax'), 0.5), 0.5 + 0.125 + 10 / 48);
  close(rankBiasedOverlap(list('a'), list('bcd'), 0.9), 0);
});

test('tied passages all stand at the first of their ranks', () => {
  // Depth 1: one common of 1 and 2 passages, 2/3. Depth 2: two of 2 and 2.
  close(rankBiasedOverlap(list('ab'), list('(ab)'), 0.5), 0.5 * (2 / 3) + 0.25 + 0.25);
  // The order within a tie does not matter.
  close(rankBiasedOverlap(list('(ab)c'), list('(ba)c'), 0.9), 1);
  // An unequal pair: short a, long (ab)c. Depth 1: 2 · 1 / (1 + 2) = 2/3; below, a is seen and 2/3 a rank are unseen.
  // Depth 2: 2 (1 + 2/3) / (2 + 2) = 5/6. Depth 3: 2 (1 + 4/3) / (3 + 3) = 7/9. The tail has 7/9 too.
  close(rankBiasedOverlap(list('a'), list('(ab)c'), 0.5), 0.5 * (2 / 3) + 0.25 * (5 / 6) + 0.125 * (7 / 9) * 2);
});

test('RBO of empty lists: two are equal, one has nothing in common with another list', () => {
  assert.equal(rankBiasedOverlap(list(''), list(''), 0.9), 1);
  assert.equal(rankBiasedOverlap(list(''), list('ab'), 0.9), 0);
});

test('of a repeated passage the first counts', () => {
  close(
    rankBiasedOverlap(list('aab'), list('ab'), 0.5),
    rankBiasedOverlap({ passages: ['a', 'b'], scores: [2, 1] }, list('ab'), 0.5),
  );
});

const ranked = fc
  .record({
    passages: fc.uniqueArray(fc.constantFrom(...'abcdefghij'), { maxLength: 10 }),
    steps: fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 10, maxLength: 10 }),
  })
  .map(({ passages, steps }): RankedList => {
    let score = 0;
    return { passages, scores: passages.map((_, i) => (score -= steps[i]!)) };
  });

test('RBO is symmetric, between 0 and 1, and 1 for a list and itself', () => {
  fc.assert(
    fc.property(ranked, ranked, fc.double({ min: 0.01, max: 0.99, noNaN: true }), (a, b, p) => {
      const rbo = rankBiasedOverlap(a, b, p);
      assert.ok(rbo >= 0 && rbo <= 1 + 1e-9, `${rbo}`);
      close(rankBiasedOverlap(b, a, p), rbo);
      close(rankBiasedOverlap(a, a, p), 1);
    }),
  );
});

test('overlap at k divides by k, or by the length of the longer list', () => {
  assert.equal(overlapAt([...'abc'], [...'bax'], 3), 2 / 3);
  assert.equal(overlapAt([...'abc'], [...'bax'], 1), 0);
  assert.equal(overlapAt([...'ab'], [...'a'], 5), 1 / 2);
  assert.equal(overlapAt([], [], 5), null);
  assert.equal(overlapAt([], ['a'], 5), 0);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { seededSample } from '../../../training/agentic-r/seeded-sample.ts';
import { AGENTIC_R_RULE, type JudgedCandidate, splitCandidates } from '../../../training/agentic-r/training-rule.ts';

/** Candidates in the order of retrieval, from pairs of em and the judge's number; rows count from 0. */
function candidates(...pairs: readonly (readonly [number | undefined, number | undefined])[]): JudgedCandidate[] {
  return pairs.map(([em, local], row) => ({ row, em, local: local === undefined ? undefined : local / 100 }));
}

function rowsOf(list: readonly JudgedCandidate[]): number[] {
  return list.map(({ row }) => row);
}

function split(list: readonly JudgedCandidate[]): unknown {
  const found = splitCandidates(list, AGENTIC_R_RULE);
  return typeof found === 'string' ? found : [rowsOf(found.positives), rowsOf(found.negatives)];
}

test('correct candidates come first, then those with the higher local utility; ties keep the order of retrieval', () => {
  assert.deepEqual(split(candidates([0, 100], [1, 70], [1, 80], [0, 30], [1, 70], [0, 100])), [[2], [1, 4, 0, 5, 3]]);
});

test('a local utility of 0.60 passes, of 0.59 does not', () => {
  assert.deepEqual(split(candidates([0, 99], [1, 60])), [[1], [0]]);
  assert.equal(split(candidates([0, 99], [1, 59])), 'below-threshold');
});

test('a round without a correct candidate is dropped, whatever the judge says', () => {
  assert.equal(split(candidates([0, 100], [0, 90])), 'not-correct');
  assert.equal(split([]), 'not-correct');
});

test('all that equal the best in both numbers are positives, a point less is a negative', () => {
  assert.deepEqual(split(candidates([1, 80], [1, 79], [0, 80], [1, 80])), [
    [0, 3],
    [1, 2],
  ]);
});

test('with one utility alone, that one decides', () => {
  assert.deepEqual(split(candidates([undefined, 59], [undefined, 95], [undefined, 60])), [[1], [2, 0]]);
  assert.equal(split(candidates([undefined, 59])), 'below-threshold');
  assert.deepEqual(split(candidates([0, undefined], [1, undefined], [1, undefined])), [[1, 2], [0]]);
  assert.equal(split(candidates([0, undefined])), 'not-correct');
});

test('any candidates are split into positives that are equally good and negatives that are worse', () => {
  const pair = fc.tuple(fc.constantFrom(0, 1), fc.integer({ min: 0, max: 100 }));
  fc.assert(
    fc.property(fc.array(pair, { maxLength: 25 }), (pairs) => {
      const list = candidates(...pairs);
      const best = pairs.reduce((top, [em, local]) => Math.max(top, em * 1000 + local), -1);
      const found = splitCandidates(list, AGENTIC_R_RULE);
      if (typeof found === 'string') {
        assert.ok(best < 1060);
        return;
      }
      assert.ok(best >= 1060);
      const value = ({ em, local }: JudgedCandidate): number => em! * 1000 + Math.round(local! * 100);
      assert.ok(found.positives.every((candidate) => value(candidate) === best));
      assert.ok(found.negatives.every((candidate) => value(candidate) < best));
      assert.deepEqual(
        rowsOf([...found.positives, ...found.negatives]).sort((a, b) => a - b),
        list.map(({ row }) => row),
      );
    }),
  );
});

test('a draw has distinct items in their order and depends on seed and key alone', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer()), fc.nat(), fc.string(), (items, seed, key) => {
      const count = seed % (items.length + 1);
      const drawn = seededSample(items, count, { seed, key });
      assert.equal(drawn.length, count);
      assert.deepEqual(
        drawn,
        items.filter((item) => drawn.includes(item)),
      );
      assert.deepEqual(seededSample(items, count, { seed, key }), drawn);
    }),
  );
});

test('over many keys every item is drawn equally often', () => {
  const items = Array.from({ length: 19 }, (_, i) => i);
  const times = items.map(() => 0);
  const draws = 4000;
  for (let i = 0; i < draws; i++) {
    for (const item of seededSample(items, 15, { seed: 7, key: `train_${i}\u00001` })) times[item]! += 1;
  }
  // The draws are the same in every run. The standard deviation is about 26.
  for (const [item, count] of times.entries())
    assert.ok(Math.abs(count - (draws * 15) / 19) < 120, `${item}: ${count}`);
});

test('another seed and another key give another draw', () => {
  const items = Array.from({ length: 1000 }, (_, i) => i);
  const draw = (seed: number, key: string): string => seededSample(items, 15, { seed, key }).join();
  assert.equal(new Set([draw(0, 'a'), draw(1, 'a'), draw(0, 'b')]).size, 3);
});

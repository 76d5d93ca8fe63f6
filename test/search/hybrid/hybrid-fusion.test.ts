import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type FusedRow, fuseLists, type SideList } from '../../../src/search/hybrid/hybrid-fusion.ts';
import {
  type HybridSettings,
  hybridFault,
  hybridSettings,
  mergedHybrid,
} from '../../../src/search/hybrid/hybrid-settings.ts';
import { standardDeviation } from '../../helpers/standard-deviation.ts';

type Scored = readonly (readonly [row: number, score: number])[];

function list(hits: Scored): SideList {
  return { rows: Float64Array.from(hits, ([row]) => row), scores: Float32Array.from(hits, ([, score]) => score) };
}

function fuseRows(...call: Parameters<typeof fuseLists>): readonly FusedRow[] {
  return fuseLists(...call).rows;
}

/** The score of one row, from the definition. */
function naiveScore(row: number, dense: Scored, bm25: Scored, settings: HybridSettings): number {
  const part = (hits: Scored, weight: number, isFull: boolean): number => {
    const at = hits.findIndex(([found]) => found === row);
    if (at < 0) return 0;
    if (settings.fusion === 'rrf') return weight / (settings.rrfK + at + 1);
    const scores = [...hits.map(([, score]) => score), ...(isFull ? [] : [0])];
    const floor = scores.at(-1)!;
    return weight * (scores[0] === floor ? 1 : (hits[at]![1] - floor) / standardDeviation(scores));
  };
  const denseFull = true;
  const bm25Full = bm25.length === settings.depth;
  return Math.fround(part(dense, settings.denseWeight, denseFull) + part(bm25, settings.bm25Weight, bm25Full));
}

function naive(dense: Scored, bm25: Scored, settings: HybridSettings): FusedRow[] {
  const place = (hits: Scored, row: number) => {
    const at = hits.findIndex(([found]) => found === row);
    return at < 0 ? null : { rank: at + 1, score: hits[at]![1] };
  };
  return [...new Set([...dense, ...bm25].map(([row]) => row))]
    .map((row) => ({
      row,
      score: naiveScore(row, dense, bm25, settings),
      places: { dense: place(dense, row), bm25: place(bm25, row) },
    }))
    .sort((a, b) => b.score - a.score || a.row - b.row);
}

/** A list in the order of the engines, with many ties. */
const hits = (scores: fc.Arbitrary<number>, depth: number): fc.Arbitrary<Scored> =>
  fc
    .uniqueArray(fc.tuple(fc.integer({ min: 0, max: 40 }), scores), { selector: ([row]) => row, maxLength: depth })
    .map((found) => found.sort(([rowA, a], [rowB, b]) => b - a || rowA - rowB));

const settingsAndLists = fc
  .record({
    fusion: fc.constantFrom('rrf' as const, 'weighted' as const),
    rrfK: fc.constantFrom(0, 1, 60, 1e6),
    denseWeight: fc.constantFrom(0, 0.3, 1, 1e6),
    bm25Weight: fc.constantFrom(0.7, 1, 3),
    depth: fc.integer({ min: 1, max: 20 }),
  })
  .chain((settings) =>
    fc.tuple(
      fc.constant(settings),
      hits(
        fc.oneof(
          fc.constantFrom(-2, -1, 0.5, 0.25, Math.fround(3e38), Math.fround(-3e38)),
          fc.float({ noNaN: true, min: -5, max: 5 }),
        ),
        settings.depth,
      ),
      hits(fc.oneof(fc.constantFrom(1, 2), fc.float({ noNaN: true, min: 0.125, max: 30 })), settings.depth),
    ),
  );

test('the fused list is the definition applied to each row of both lists, to the bit', () => {
  fc.assert(
    fc.property(settingsAndLists, fc.nat(50), ([settings, dense, bm25], k) => {
      const clean = (found: Scored): Scored => found.map(([row, score]) => [row, score + 0]);
      const expected = naive(clean(dense), clean(bm25), settings);
      assert.deepEqual(fuseRows(list(dense), list(bm25), settings, 100), expected);
      assert.deepEqual(fuseRows(list(dense), list(bm25), settings, k), expected.slice(0, k), 'fewer are a prefix');
    }),
    { numRuns: 500 },
  );
});

test('reciprocal ranks: a passage that both lists have precedes one that a single list ranks higher', () => {
  const settings = hybridSettings({ fusion: 'rrf' }, 10);
  const fused = fuseRows(
    list([
      [5, 0.9],
      [7, 0.8],
    ]),
    list([
      [3, 12],
      [7, 9],
    ]),
    settings,
    10,
  );
  assert.deepEqual(fused, [
    {
      row: 7,
      score: Math.fround(2 / 12),
      places: { dense: { rank: 2, score: Math.fround(0.8) }, bm25: { rank: 2, score: 9 } },
    },
    { row: 3, score: Math.fround(1 / 11), places: { dense: null, bm25: { rank: 1, score: 12 } } },
    { row: 5, score: Math.fround(1 / 11), places: { dense: { rank: 1, score: Math.fround(0.9) }, bm25: null } },
  ]);
});

test('weighted scores: standard deviations above the last score of a full list, and above 0 for fewer rows by words', () => {
  const settings = hybridSettings({ fusion: 'weighted', denseWeight: 1, bm25Weight: 10, depth: 3 }, 3);
  const dense: Scored = [
    [0, 0.75],
    [1, 0.5],
    [2, 0.25],
  ];
  const scores = (bm25: Scored) =>
    fuseRows(list(dense), list(bm25), settings, 10).map(({ row, score }) => [row, score]);
  // The scores of each list are a step apart: their standard deviation is √(2/3) steps.
  const step = 1 / Math.sqrt(2 / 3);
  const full = scores([
    [1, 8],
    [4, 6],
    [5, 4],
  ]);
  assert.deepEqual(full, [
    [1, Math.fround(21 * step)],
    [4, Math.fround(10 * step)],
    [0, Math.fround(2 * step)],
    [2, 0],
    [5, 0],
  ]);
  const short = scores([
    [1, 8],
    [4, 4],
  ]);
  assert.deepEqual(short, [
    [1, Math.fround(21 * step)],
    [4, Math.fround(10 * step)],
    [0, Math.fround(2 * step)],
    [2, 0],
  ]);
});

test('a single match by words counts as two standard deviations, so that it does not outweigh the dense list', () => {
  const settings = hybridSettings({ denseWeight: 1, bm25Weight: 1, depth: 9 }, 9);
  for (const score of [0.001, 5, 1e6]) {
    assert.deepEqual(fuseRows(list([]), list([[3, score]]), settings, 1)[0]!.score, 2, String(score));
  }
});

test('a list whose scores stand close together does not hide one that stands out in the other list', () => {
  // The dense list tells its rows apart by noise alone; by words one row is far ahead of ninety-nine others.
  const dense: Scored = Array.from({ length: 100 }, (_, i) => [i, 0.8 - i * 1e-4]);
  const bm25: Scored = Array.from({ length: 100 }, (_, i) => [100 + i, i === 0 ? 40 : 3 - i * 0.01]);
  const settings = hybridSettings({ depth: 100 }, 3);
  assert.equal(fuseRows(list(dense), list(bm25), settings, 1)[0]!.row, 100);
});

test('equal scores in a full list add the weight, and an empty list adds nothing', () => {
  const settings = hybridSettings({ fusion: 'weighted', depth: 2, denseWeight: 0.25, bm25Weight: 0.5 }, 2);
  const scores = (dense: Scored, bm25: Scored) =>
    fuseRows(list(dense), list(bm25), settings, 10).map(({ row, score }) => [row, score]);
  assert.deepEqual(
    scores(
      [
        [9, -4],
        [8, -4],
      ],
      [
        [8, 3],
        [9, 3],
      ],
    ),
    [
      [8, 0.75],
      [9, 0.75],
    ],
  );
  assert.deepEqual(scores([[1, -0]], []), [[1, 0.25]]);
  assert.deepEqual(scores([], [[1, 2]]), [[1, 1]]);
  assert.deepEqual(scores([], []), []);
});

test('settings have defaults of their fusion, and take weights only from settings of the same fusion', () => {
  const common = { rrfK: 10, depth: 1_000 };
  assert.deepEqual(hybridSettings({}, 5), { fusion: 'weighted', denseWeight: 0.5, bm25Weight: 0.5, ...common });
  assert.deepEqual(hybridSettings({ fusion: 'rrf' }, 5), { fusion: 'rrf', denseWeight: 1, bm25Weight: 1, ...common });
  assert.equal(hybridSettings({}, 2_000).depth, 2_000);
  assert.equal(hybridSettings({ depth: 7 }, 2_000).depth, 7);
  const server = { fusion: 'weighted', denseWeight: 0.2, depth: 50 } as const;
  assert.deepEqual(mergedHybrid({ depth: 9 }, server), { ...server, depth: 9 });
  assert.deepEqual(mergedHybrid({ fusion: 'rrf' }, server), { fusion: 'rrf', depth: 50 });
  assert.equal(hybridSettings({ fusion: 'rrf' }, 1, server).denseWeight, 1);
  assert.equal(hybridSettings({ fusion: 'weighted' }, 1, server).denseWeight, 0.2);
  assert.equal(hybridSettings({}, 1, { denseWeight: 3 }).denseWeight, 3);
});

test('a setting out of range is named with its value', () => {
  for (const [settings, message] of [
    [{ fusion: 'sum' as 'rrf' }, /fusion is "sum"; expected rrf or weighted/],
    [{ rrfK: -1 }, /rrfK is -1; expected a number from 0/],
    [{ denseWeight: Number.NaN }, /denseWeight is NaN/],
    [{ bm25Weight: Number.POSITIVE_INFINITY }, /bm25Weight is Infinity/],
    [{ depth: 0 }, /depth is 0; expected a whole number/],
    [{ depth: 1.5 }, /depth is 1\.5/],
    [{ denseWeight: 0, bm25Weight: 0 }, /denseWeight and hybrid\.bm25Weight are 0/],
  ] as const) {
    assert.match(hybridFault(settings)!, message);
  }
  assert.equal(hybridFault({ fusion: 'weighted', rrfK: 0, denseWeight: 0, bm25Weight: 1, depth: 1 }), undefined);
  assert.equal(hybridFault({}), undefined);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placeLabels } from '../../../bench/report/label-places.ts';

const PLOT = { segments: [], width: 800, bottom: 300 };

test('labels of points that are close together are placed beside each other', () => {
  const points = [
    { px: 75, py: 186, label: 'bm25s, bm25 (library)' },
    { px: 120, py: 186, label: 'trawl, bm25 (library)' },
    { px: 296, py: 186, label: 'lucene, bm25 (library)' },
    { px: 349, py: 186, label: 'trawl, bm25' },
  ];
  const places = placeLabels(points, { ...PLOT, points });
  for (const [i, { x, y, anchor }] of places.entries()) {
    assert.equal(anchor, 'start');
    for (const [j, other] of places.entries()) {
      if (j <= i || Math.abs(other.y - y) >= 14) continue;
      assert.ok(other.x > x + 7 * points[i]!.label.length, `${points[i]!.label} and ${points[j]!.label}`);
    }
  }
});

test('a label is not where a line passes, and within the plot', () => {
  const [from, to] = [
    { px: 100, py: 200 },
    { px: 200, py: 160 },
  ];
  const rising = { ...PLOT, points: [from, to], segments: [[from, to]] as const };
  assert.deepEqual(placeLabels([{ ...from, label: '141 ms' }], rising), [{ x: 109, y: 218, anchor: 'start' }]);
  const right = { px: 790, py: 295, label: 'at the corner' };
  assert.deepEqual(placeLabels([right], { ...PLOT, points: [right] }), [{ x: 781, y: 288, anchor: 'end' }]);
});

test('where points are all around, a label covers points rather than another label or the edge', () => {
  const points = Array.from({ length: 40 }, (_, i) => ({ px: 100 + 20 * (i % 8), py: 100 + 12 * Math.floor(i / 8) }));
  const label = 'in the middle';
  const places = placeLabels(
    Array.from({ length: 4 }, () => ({ ...points[20]!, label })),
    { ...PLOT, points },
  );
  const left = ({ x, anchor }: (typeof places)[number]): number =>
    x - { start: 0, middle: 0.5, end: 1 }[anchor] * 7 * label.length;
  for (const [i, place] of places.entries()) {
    assert.ok(left(place) >= 0 && place.y <= PLOT.bottom);
    for (const other of places.slice(i + 1)) {
      const apart = Math.abs(left(place) - left(other)) >= 7 * label.length || Math.abs(place.y - other.y) >= 14;
      assert.ok(apart, JSON.stringify([place, other]));
    }
  }
});

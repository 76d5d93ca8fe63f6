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
    const next = places.findIndex((other, j) => j > i && Math.abs(other.y - y) < 14);
    if (next !== -1) assert.ok(places[next]!.x > x + 7 * points[i]!.label.length, points[i]!.label);
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

test('a label stands over something only where everything around its point is covered', () => {
  const points = Array.from({ length: 40 }, (_, i) => ({ px: 100 + 20 * (i % 8), py: 100 + 12 * Math.floor(i / 8) }));
  const places = placeLabels([{ ...points[20]!, label: 'in the middle' }], { ...PLOT, points });
  assert.equal(places.length, 1);
  assert.ok(places[0]!.x > 0 && places[0]!.y < 300);
});

/** In pixels of the plot. */
interface Point {
  readonly px: number;
  readonly py: number;
}

interface LabelledPoint extends Point {
  readonly label: string;
}

export interface Place {
  /** Of the text's anchor, on its baseline. */
  readonly x: number;
  readonly y: number;
  readonly anchor: 'start' | 'middle' | 'end';
}

export interface Obstacles {
  readonly points: readonly Point[];
  /** Lines between points. */
  readonly segments: readonly (readonly [Point, Point])[];
  readonly width: number;
  /** Lowest baseline of a label. */
  readonly bottom: number;
}

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

const CHARACTER_WIDTH = 7;
const TEXT_HEIGHT = 12;
const MARKER = 6;

/** Where a label may stand, the best place first. */
const PLACES: readonly { readonly dx: number; readonly dy: number; readonly anchor: Place['anchor'] }[] = [
  { dx: 9, dy: -7, anchor: 'start' },
  { dx: 9, dy: 18, anchor: 'start' },
  { dx: -9, dy: -7, anchor: 'end' },
  { dx: -9, dy: 18, anchor: 'end' },
  { dx: 0, dy: -12, anchor: 'middle' },
  { dx: 0, dy: 22, anchor: 'middle' },
  { dx: 0, dy: -26, anchor: 'middle' },
  { dx: 0, dy: 36, anchor: 'middle' },
];
/** Cost of a place: of each thing that the label would cover, and a little more for each place that comes later in the list. */
const COST = { label: 1000, edge: 1000, point: 100, line: 10, later: 1 } as const;

/** Places one label after the other, each at the place of least cost. */
export function placeLabels(labels: readonly LabelledPoint[], obstacles: Obstacles): Place[] {
  const placed: Box[] = [];
  return labels.map((labelled) => {
    const places = PLACES.map(({ dx, dy, anchor }, i) => {
      const place = { x: labelled.px + dx, y: labelled.py + dy, anchor };
      const box = boxOf(labelled.label, place);
      return { place, box, cost: i * COST.later + costOf(box, place, placed, obstacles) };
    });
    const best = places.reduce((least, each) => (each.cost < least.cost ? each : least));
    placed.push(best.box);
    return best.place;
  });
}

function boxOf(label: string, { x, y, anchor }: Place): Box {
  const width = label.length * CHARACTER_WIDTH;
  const left = anchor === 'start' ? x : anchor === 'end' ? x - width : x - width / 2;
  return { left, right: left + width, top: y - TEXT_HEIGHT, bottom: y + 2 };
}

function costOf(
  box: Box,
  place: Place,
  placed: readonly Box[],
  { points, segments, width, bottom }: Obstacles,
): number {
  const outside = box.left < 0 || box.right > width || box.top < 0 || place.y > bottom;
  const covered = points.filter(({ px, py }) => overlap(box, around(px, py))).length;
  return (
    (outside ? COST.edge : 0) +
    COST.label * placed.filter((other) => overlap(box, other)).length +
    COST.point * covered +
    COST.line * segments.filter((segment) => crosses(box, segment)).length
  );
}

function around(px: number, py: number): Box {
  return { left: px - MARKER, right: px + MARKER, top: py - MARKER, bottom: py + MARKER };
}

function overlap(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** Whether a segment passes through a box: at its ends, or where it crosses the box's left, middle or right. */
function crosses({ left, right, top, bottom }: Box, [from, to]: readonly [Point, Point]): boolean {
  const [a, b] = from.px <= to.px ? [from, to] : [to, from];
  const [low, high] = [Math.max(left, a.px), Math.min(right, b.px)];
  if (low > high) return false;
  const at = (x: number): number => (a.px === b.px ? a.py : a.py + ((x - a.px) / (b.px - a.px)) * (b.py - a.py));
  const [first, last] = [at(low), at(high)];
  return Math.min(first, last) < bottom && Math.max(first, last) > top;
}

import { placeLabels } from './label-places.ts';
import { element, joined, type Markup, textElement } from './markup.ts';
import { type Axis, frame, responsivePlot } from './plot-frame.ts';

interface PlotPoint {
  readonly x: number;
  readonly y: number;
  /** Shown when a pointer rests on the point. */
  readonly title: string;
  /** Written beside the point. */
  readonly label?: string;
}

export interface Series {
  readonly name: string;
  readonly points: readonly PlotPoint[];
  /** Whether to connect the points. */
  readonly line: boolean;
}

/** Number of distinct colours and shapes of points (report-style.ts). */
const LOOKS = 8;
const HEIGHT = { wide: 340, narrow: 300 } as const;

/** Series of points, connected or not, with their legend. */
export function linePlot(
  title: string,
  series: readonly Series[],
  axes: {
    readonly x: Omit<Axis, 'domain'>;
    readonly y: Omit<Axis, 'domain'> & { readonly from?: number; readonly to?: number };
  },
): Markup {
  const points = series.flatMap((one) => one.points);
  if (points.length === 0) return '' as Markup;
  const range = (values: readonly number[]): [number, number] => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return low === high ? [low * 0.9, high * 1.1] : [low, high];
  };
  const x = { ...axes.x, domain: range(points.map((point) => point.x)) };
  const [low, high] = range(points.map((point) => point.y));
  const y = { ...axes.y, domain: [axes.y.from ?? low, axes.y.to ?? high] as const };
  const plot = responsivePlot(title, (width) => {
    const height = width > 500 ? HEIGHT.wide : HEIGHT.narrow;
    const { markup, xScale, yScale } = frame(x, y, { width, height });
    const placed = series.map(({ points: own }) =>
      own.map((point) => ({ ...point, px: xScale(point.x), py: yScale(point.y) })),
    );
    const drawn = placed.map((at, i) => {
      const path = at.map(({ px, py }) => `${px.toFixed(1)},${py.toFixed(1)}`).join(' ');
      return element(
        'g',
        { class: `look${i % LOOKS}` },
        ...(series[i]!.line && at.length > 1 ? [element('polyline', { points: path })] : []),
        ...at.map(({ px, py, title: hint }) => element('g', {}, marker(i, px, py), textElement('title', hint))),
      );
    });
    // After all series, so that no line is drawn over a label.
    if (width > 500) drawn.push(...labelsOf(placed, series, { width, bottom: yScale.range()[0]! }));
    return { content: joined([markup, ...drawn]), height };
  });
  return joined([plot, legend(series.map(({ name }) => name))]);
}

type DrawnPoint = PlotPoint & { readonly px: number; readonly py: number };

function labelsOf(
  placed: readonly (readonly DrawnPoint[])[],
  series: readonly Series[],
  { width, bottom }: { readonly width: number; readonly bottom: number },
): Markup[] {
  const points = placed.flat();
  const segments = placed.flatMap((at, i) =>
    series[i]!.line ? at.slice(1).map((to, j) => [at[j]!, to] as const) : [],
  );
  const labelled = points.flatMap(({ px, py, label }) => (label === undefined ? [] : [{ px, py, label }]));
  const places = placeLabels(labelled, { points, segments, width, bottom });
  return labelled.map(({ label }, i) => {
    const { x, y, anchor } = places[i]!;
    return textElement('text', label, {
      class: 'value',
      x,
      y,
      ...(anchor === 'start' ? {} : { 'text-anchor': anchor }),
    });
  });
}

/**
 * The look of a series: circle, square, triangle or diamond, so that colour is not the only difference. After all colours were used, each
 * gets the next shape.
 */
export function marker(series: number, x: number, y: number): Markup {
  switch ((series + Math.floor(series / LOOKS)) % 4) {
    case 0:
      return element('circle', { cx: x, cy: y, r: 5 });
    case 1:
      return element('rect', { x: x - 4.5, y: y - 4.5, width: 9, height: 9 });
    case 2:
      return element('path', { d: `M${x.toFixed(1)},${(y - 6).toFixed(1)}l5.5,10h-11z` });
    default:
      return element('path', { d: `M${x.toFixed(1)},${(y - 6).toFixed(1)}l6,6l-6,6l-6,-6z` });
  }
}

export function legend(names: readonly string[]): Markup {
  if (names.length < 2) return '' as Markup;
  const items = names.map((name, i) =>
    element(
      'li',
      {},
      element('svg', { viewBox: '0 0 16 16', class: `look${i % LOOKS}`, 'aria-hidden': 'true' }, marker(i, 8, 8)),
      { text: name },
    ),
  );
  return element('ul', { class: 'legend' }, ...items);
}

import { element, joined, type Markup, textElement } from './markup.ts';
import { type Axis, frame, responsivePlot } from './plot-frame.ts';

export interface PlotPoint {
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
const LABEL_CHARACTER_WIDTH = 7;
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
    const drawn = series.map(({ points: own, line }, i) => {
      const at = own.map((point) => ({ ...point, px: xScale(point.x), py: yScale(point.y) }));
      const path = at.map(({ px, py }) => `${px.toFixed(1)},${py.toFixed(1)}`).join(' ');
      const look = `look${i % LOOKS}`;
      return element(
        'g',
        { class: look },
        ...(line && at.length > 1 ? [element('polyline', { points: path })] : []),
        ...at.map(({ px, py, title: hint }) => element('g', {}, marker(i, px, py), textElement('title', hint))),
        ...(width > 500
          ? at.flatMap(({ px, py, label }, j) => {
              // Below the first point if its line rises, which would cross the label, unless that is beyond the axis.
              const rises = j === 0 && (at[1]?.py ?? py) < py;
              const below = line ? rises && py + BELOW < yScale.range()[0]! : i % 2 === 1;
              return label === undefined ? [] : [pointLabel(label, { px, py: below ? py + BELOW : py - 7 }, width)];
            })
          : []),
      );
    });
    return { content: joined([markup, ...drawn]), height };
  });
  return joined([plot, legend(series.map(({ name }) => name))]);
}

/** From a point to the baseline of a label below it. */
const BELOW = 18;

/** A label to the right of its point, or to the left where it would leave the plot. */
function pointLabel(label: string, { px, py }: { px: number; py: number }, width: number): Markup {
  const fits = px + 9 + label.length * LABEL_CHARACTER_WIDTH < width;
  const place = fits ? { x: px + 9 } : { x: px - 9, 'text-anchor': 'end' };
  return textElement('text', label, { class: 'value', ...place, y: py });
}

/** The look of a series: circle, square, triangle or diamond, so that colour is not the only difference. */
export function marker(series: number, x: number, y: number): Markup {
  switch (series % 4) {
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

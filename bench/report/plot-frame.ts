import { type ScaleLinear, type ScaleLogarithmic, scaleLinear, scaleLog } from 'd3-scale';
import { element, joined, type Markup, textElement } from './markup.ts';

/** Widths at which each plot is drawn. CSS shows the one that fits, so that texts keep their size on a phone. */
const PLOT_WIDTHS = { wide: 720, narrow: 340 } as const;
type PlotWidth = keyof typeof PLOT_WIDTHS;

export type Scale = ScaleLinear<number, number> | ScaleLogarithmic<number, number>;

export interface Axis {
  readonly label: string;
  readonly log: boolean;
  /** Smallest and largest value of the data. */
  readonly domain: readonly [number, number];
  /** Values of the ticks; default: chosen. */
  readonly ticks?: readonly number[];
  format(value: number): string;
}

/** Room for an axis' texts, in pixels. */
const MARGIN = { top: 14, right: 18, bottom: 46 } as const;
const CHARACTER_WIDTH = 7.2;

/** The same plot in both widths. `draw` returns the content and the height. */
export function responsivePlot(
  title: string,
  draw: (width: number) => { readonly content: Markup; readonly height: number },
): Markup {
  const drawn = (Object.keys(PLOT_WIDTHS) as PlotWidth[]).map((name) => {
    const width = PLOT_WIDTHS[name];
    const { content, height } = draw(width);
    const attributes = { class: name, viewBox: `0 0 ${width} ${Math.ceil(height)}`, role: 'img', 'aria-label': title };
    return element('svg', attributes, textElement('title', title), content);
  });
  return element('div', { class: 'plot' }, ...drawn);
}

/** Axes with grid lines, and the scales for what is drawn between them. */
export function frame(
  x: Axis,
  y: Axis,
  { width, height }: { readonly width: number; readonly height: number },
): { readonly markup: Markup; readonly xScale: Scale; readonly yScale: Scale } {
  const yScale = scaleOf(y, [height - MARGIN.bottom, MARGIN.top + 16]);
  const yTicks = ticksOf(y, yScale, 5);
  const left = Math.max(...yTicks.map((tick) => y.format(tick).length)) * CHARACTER_WIDTH + 14;
  const xScale = scaleOf(x, [left, width - MARGIN.right]);
  const xTicks = thinned(ticksOf(x, xScale, Math.floor(width / 90)), x, xScale);
  const bottom = height - MARGIN.bottom;
  const markup = joined([
    ...yTicks.map((tick) =>
      joined([
        element('line', { class: 'grid', x1: left, x2: width - MARGIN.right, y1: yScale(tick), y2: yScale(tick) }),
        textElement('text', y.format(tick), { class: 'tick', x: left - 8, y: yScale(tick) + 4, 'text-anchor': 'end' }),
      ]),
    ),
    ...xTicks.map((tick) =>
      joined([
        element('line', { class: 'grid', x1: xScale(tick), x2: xScale(tick), y1: MARGIN.top + 16, y2: bottom }),
        textElement('text', x.format(tick), {
          class: 'tick',
          x: xScale(tick),
          y: bottom + 18,
          'text-anchor': 'middle',
        }),
      ]),
    ),
    element('line', { class: 'axis', x1: left, x2: width - MARGIN.right, y1: bottom, y2: bottom }),
    textElement('text', x.label, { class: 'label', x: width - MARGIN.right, y: height - 8, 'text-anchor': 'end' }),
    textElement('text', y.label, { class: 'label', x: 2, y: MARGIN.top }),
  ]);
  return { markup, xScale, yScale };
}

function scaleOf({ log, domain: [low, high] }: Axis, range: readonly [number, number]): Scale {
  if (!log) return scaleLinear([low, high], range).nice(5);
  // Some room around the outermost points, in place of whole powers of ten.
  const room = high / low > 20 ? 1.25 : 1.1;
  return scaleLog([low / room, high * room], range);
}

function ticksOf(axis: Axis, scale: Scale, count: number): readonly number[] {
  if (axis.ticks !== undefined) return axis.ticks;
  if (!axis.log) return scale.ticks(count);
  const [low, high] = scale.domain() as [number, number];
  const decades = Math.log10(high / low);
  const steps = decades > 4 ? [1] : decades > 1.3 ? [1, 3] : [1, 2, 3, 5, 7];
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const step of steps) {
      const value = step * 10 ** power;
      if (value >= low && value <= high) ticks.push(Number(value.toPrecision(6)));
    }
  }
  return ticks;
}

/** Leaves out ticks whose texts would touch the one before. */
function thinned(ticks: readonly number[], axis: Axis, scale: Scale): readonly number[] {
  let end = Number.NEGATIVE_INFINITY;
  return ticks.filter((tick) => {
    const half = (axis.format(tick).length * CHARACTER_WIDTH) / 2;
    const from = scale(tick) - half;
    if (from < end + 6) return false;
    end = scale(tick) + half;
    return true;
  });
}

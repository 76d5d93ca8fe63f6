import { codesBytes } from '../../src/engine/vectors/codes-size.ts';
import type { MachinePeaks } from '../all/all-result.ts';
import type { FlatRecord } from '../flat/flat-case.ts';
import { legend, marker } from './line-plot.ts';
import { element, joined, type Markup, textElement } from './markup.ts';
import { frame, responsivePlot } from './plot-frame.ts';

/** A search in the roofline: its products per byte that it reads in order, and its products per second. */
export interface RooflinePoint {
  readonly engine: string;
  readonly queries: number;
  readonly productsPerByte: number;
  readonly productsPerS: number;
}

const HEIGHT = { wide: 360, narrow: 320 } as const;

/**
 * Trawl reads its prefilter (or its codes) in order and multiplies each of their int8 values with one of each query. The other
 * engines read every float32 value. Rescored rows are left out.
 */
export function rooflinePoints(records: readonly FlatRecord[]): RooflinePoint[] {
  return records.map(({ engine, queries, rows, dimension, medianMs, residentBytes }) => {
    const isTrawl = engine === 'trawl';
    const values = isTrawl ? codedValues(rows, dimension, residentBytes) : dimension;
    const bytes = isTrawl ? residentBytes / rows : 4 * dimension;
    return {
      engine,
      queries,
      productsPerByte: (queries * values) / bytes,
      productsPerS: (queries * rows * values) / (medianMs / 1000),
    };
  });
}

/** int8 values of a row in the file that a search reads in full: the number whose file size is nearest to the actual one. */
function codedValues(rows: number, dimension: number, residentBytes: number): number {
  const codes = Math.ceil(dimension / 64) * 64;
  let best = codes;
  let smallest = Math.abs(codesBytes(rows, dimension) - residentBytes);
  for (let components = 64; components < dimension; components += 64) {
    const size = codesBytes(rows, components) + 4 * components * dimension;
    if (Math.abs(size - residentBytes) >= smallest) continue;
    smallest = Math.abs(size - residentBytes);
    best = components;
  }
  return best;
}

/** Searches under the machine's roofs: memory bandwidth, and the peak of int8 and of float32 products. */
export function rooflinePlot(title: string, points: readonly RooflinePoint[], peaks: MachinePeaks): Markup {
  if (points.length === 0) return '' as Markup;
  const roofs = [
    { name: 'int8 peak', rate: peaks.int8ProductsPerS },
    { name: 'float32 peak', rate: peaks.float32ProductsPerS },
  ].flatMap(({ name, rate }) => (rate === null ? [] : [{ name, rate }]));
  const engines = [...new Set(points.map(({ engine }) => engine))];
  const xs = points.map(({ productsPerByte }) => productsPerByte);
  const ys = [...points.map(({ productsPerS }) => productsPerS), ...roofs.map(({ rate }) => rate)];
  const highest = Math.max(...ys);
  const [low, high] = [Math.min(...xs) / 1.5, Math.max(...xs) * 1.5];
  const plot = responsivePlot(title, (width) => {
    const height = width > 500 ? HEIGHT.wide : HEIGHT.narrow;
    const { markup, xScale, yScale } = frame(
      { label: 'products per byte read', log: true, domain: [low, high], format: plain },
      {
        label: '10⁹ products a second',
        log: true,
        domain: [Math.min(...ys) / 1.5, highest * 1.2],
        format: (value) => plain(value / 1e9),
      },
      { width, height },
    );
    const [from, to] = xScale.domain() as [number, number];
    const bottom = (yScale.domain() as [number, number])[0];
    const start = Math.max(from, bottom / peaks.readBytesPerS);
    const knee = Math.min(to, highest / peaks.readBytesPerS);
    const lines: Markup[] = [];
    if (knee > start) {
      const [x1, y1, x2, y2] = [
        xScale(start),
        yScale(start * peaks.readBytesPerS),
        xScale(knee),
        yScale(knee * peaks.readBytesPerS),
      ];
      const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
      const [mx, my] = [x1 + (x2 - x1) * 0.3, y1 + (y2 - y1) * 0.3];
      lines.push(element('line', { class: 'roof', x1, y1, x2, y2 }));
      lines.push(
        textElement('text', `memory ${plain(peaks.readBytesPerS / 1e9)} GB/s`, {
          class: 'roofname',
          x: mx,
          y: my - 7,
          transform: `rotate(${angle.toFixed(1)} ${mx.toFixed(1)} ${my.toFixed(1)})`,
        }),
      );
    }
    for (const { name, rate } of roofs) {
      const x1 = xScale(Math.max(from, rate / peaks.readBytesPerS));
      const y = yScale(rate);
      lines.push(element('line', { class: 'roof', x1, x2: xScale(to), y1: y, y2: y }));
      lines.push(
        textElement('text', `${name} ${plain(rate / 1e9)}`, {
          class: 'roofname',
          x: xScale(to) - 2,
          y: y - 6,
          'text-anchor': 'end',
        }),
      );
    }
    const drawn = points.map(({ engine, queries, productsPerByte, productsPerS }) => {
      const i = engines.indexOf(engine);
      const hint = `${engine}, ${queries} queries: ${plain(productsPerS / 1e9)} × 10⁹ products/s`;
      const [px, py] = [xScale(productsPerByte), yScale(productsPerS)];
      return element(
        'g',
        { class: `look${i}` },
        element('g', {}, marker(i, px, py), textElement('title', hint)),
        // The labels of all engines would cover each other.
        ...(engine === 'trawl'
          ? [textElement('text', String(queries), { class: 'value', x: px + 8, y: py + 14 })]
          : []),
      );
    });
    return { content: joined([markup, ...lines, ...drawn]), height };
  });
  return joined([plot, legend(engines)]);
}

/** A number with three digits and no power of ten. */
export function plain(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US', { maximumFractionDigits: 3 });
}

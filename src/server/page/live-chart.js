/** A chart of the last minutes: uPlot's lines, and a legend with the values now or under the pointer. */
import { make } from './dom.js';

const HEIGHT = 170;
/** Stages have the colours that they have elsewhere on the page; other names take the next free one. */
const COLOURS = ['embed', 'search', 'fetch', 'extra-2', 'reply', 'extra-1', 'rerank', 'queue'];
/** The shortest time that the chart spans, in seconds. */
const SHOWN_SECONDS = 60;

/** Axes of bytes are divided at powers of two. */
const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

export class LiveChart {
  #plot;
  /** Empty for a chart without lines, such as the chart of errors when there are none. */
  #names = [];
  #data = [[]];
  #legend = make('dl', { class: 'legend' });
  #canvas = make('div', { class: 'plot', 'aria-hidden': 'true' });
  #format;
  #steps;
  node;

  /** `format` turns a value into text. `inBytes`: the values are bytes. */
  constructor(title, format, { inBytes = false } = {}) {
    this.#format = format;
    this.#steps = inBytes ? { incrs: BYTE_STEPS } : {};
    const resized = new ResizeObserver(() => this.#plot?.setSize({ width: this.#width(), height: HEIGHT }));
    resized.observe(this.#canvas);
    this.node = make('figure', { class: 'card chart' }, make('figcaption', {}, title), this.#canvas, this.#legend);
  }

  /** `lines` are values by name, as long as `times` (in seconds, the last one is now); `null` is a gap. */
  update(times, lines) {
    const names = Object.keys(lines);
    this.#data = [times.map((time) => time - times.at(-1)), ...names.map((name) => lines[name])];
    if (this.#plot === undefined || names.join('\n') !== this.#names.join('\n')) this.#draw(names);
    else this.#plot.setData(this.#data);
    this.#showValues(times.length - 1);
  }

  /** Draws again, after the colours of the page changed. */
  redraw() {
    if (this.#plot !== undefined) this.#draw(this.#names);
  }

  close() {
    this.#plot?.destroy();
    this.#plot = undefined;
  }

  #draw(names) {
    this.close();
    this.#names = names;
    const style = getComputedStyle(document.documentElement);
    const colour = (variable) => style.getPropertyValue(`--${variable}`).trim();
    const colours = coloursOf(names).map(colour);
    const axis = { stroke: colour('muted'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false } };
    const format = this.#format;
    const options = {
      width: this.#width(),
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
      scales: {
        x: { time: false, range: () => [Math.min(this.#data[0][0] ?? 0, -SHOWN_SECONDS), 0] },
        y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] },
      },
      axes: [
        { ...axis, size: 30, gap: 9, values: (_plot, times) => times.map(ago) },
        { ...axis, ...this.#steps, size: 62, values: (_plot, values) => values.map((value) => format(value)) },
      ],
      series: [
        {},
        ...names.map((name, i) => ({
          label: name,
          stroke: colours[i],
          width: 2,
          points: { show: ({ data: [times] }) => times.length < 3 },
        })),
      ],
      hooks: { setCursor: [({ cursor }) => this.#showValues(cursor.idx ?? this.#data[0].length - 1)] },
    };
    this.#canvas.replaceChildren();
    this.#plot = new globalThis.uPlot(options, this.#data, this.#canvas);
    this.#legend.replaceChildren(
      ...names.map((name, i) => {
        const swatch = make('span', { class: 'swatch' });
        swatch.style.background = colours[i];
        return make('div', {}, make('dt', {}, swatch, name), make('dd', {}));
      }),
    );
  }

  #showValues(at) {
    this.#legend.querySelectorAll('dd').forEach((cell, i) => {
      const value = this.#data[i + 1]?.[at];
      cell.textContent = value == null ? '–' : this.#format(value);
    });
  }

  #width() {
    return Math.max(200, this.#canvas.clientWidth);
  }
}

function coloursOf(names) {
  const free = COLOURS.filter((name) => !names.includes(name));
  let next = 0;
  return names.map((name) => {
    if (COLOURS.includes(name)) return name;
    return name === 'total' ? 'text' : free[next++ % free.length];
  });
}

function ago(seconds) {
  return seconds === 0 ? 'now' : `−${Math.round(-seconds)} s`;
}

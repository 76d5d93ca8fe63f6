/** Bars for counts in buckets of equal width. */
import { make } from './dom.js';

export function histogram(counts, [low, high], { unit, label }) {
  const most = Math.max(1, ...counts);
  const width = (high - low) / counts.length;
  const shown = (value) =>
    `${Number(value.toPrecision(unit === '' ? 3 : 2))
      .toLocaleString('en')
      .replace('-', '−')}${unit === '' ? '' : ` ${unit}`}`;
  const bars = counts.map((count, i) => {
    const from = low + i * width;
    const bar = make('span', { title: `${shown(from)} to ${shown(from + width)}: ${count.toLocaleString('en')}` });
    bar.style.height = `${count === 0 ? 0 : Math.max(2, (100 * count) / most)}%`;
    return bar;
  });
  const middle = medianOf(counts, low, width);
  const place = high > low ? (100 * (middle - low)) / (high - low) : 50;
  const line = make('i', { class: 'median' });
  line.style.left = `${place}%`;
  const name = make('span', { class: 'median-name' }, `median ${shown(middle)}`);
  // Near an end of the axis, the name of the median makes room for that end's value.
  name.style.left = `clamp(30%, ${place}%, 70%)`;
  const summary = `from ${shown(low)} to ${shown(high)}, median about ${shown(middle)}`;
  const image = { class: 'bars', role: 'img', 'aria-label': `${label}: ${summary}` };
  const ends = [make('span', {}, shown(low)), name, make('span', {}, shown(high))];
  return make(
    'figure',
    { class: 'histogram' },
    make('div', image, ...bars, line),
    make('div', { class: 'ends', 'aria-hidden': 'true' }, ...ends),
  );
}

function medianOf(counts, low, width) {
  const half = counts.reduce((sum, count) => sum + count, 0) / 2;
  let below = 0;
  for (const [i, count] of counts.entries()) {
    if (below + count >= half && count > 0) return low + width * (i + (half - below) / count);
    below += count;
  }
  return low;
}

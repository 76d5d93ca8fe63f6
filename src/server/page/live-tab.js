/** The live tab: what the server does now, from GET /metrics every two seconds. */
import { definitions, fillChoice, load, make } from './dom.js';
import { LiveChart } from './live-chart.js';
import { byLabel, gained, parseMetrics, quantile, quotients, sum, total } from './metrics-text.js';
import { getText, hideError, showError } from './server.js';
import { bytes } from './units.js';

const EVERY_MS = 2000;
/** Five minutes of readings. */
const KEPT = 150;
/** Readings of the last minute, over which the quantiles are taken. */
const QUANTILE_READINGS = 30;

const rate = (value) => `${value >= 100 ? value.toFixed(0) : Number(value.toPrecision(2))}/s`;
const count = (value) => Number(value.toPrecision(3)).toLocaleString('en');
const milliseconds = (value) => `${value >= 100 ? value.toFixed(0) : Number(value.toPrecision(2))} ms`;

/** What a counter gains in a second, by a label. */
const rates =
  (name, label) =>
  ({ before, now, seconds }) =>
    gained(before, now, name, label, seconds);
/** What one counter gains for each count of another, by stage. */
const means =
  (name, counter, factor) =>
  ({ before, now }) =>
    quotients(gained(before, now, name, 'stage'), gained(before, now, counter, 'stage'), factor);

/** The charts: title, format, and the values of one reading by name. */
const CHARTS = [
  ['Requests per second, by dialect of the client', rate, rates('trawl_requests_total', 'dialect')],
  [
    'Time of a request by stage, mean',
    milliseconds,
    means('trawl_stage_seconds_sum', 'trawl_stage_seconds_count', 1000),
  ],
  ['Queries waiting, by stage', count, ({ now }) => byLabel(now, 'trawl_queue_queries', 'stage', Math.max)],
  ['Queries per batch, mean', count, means('trawl_batch_queries_total', 'trawl_batches_total')],
  ['Queries by where their answer comes from', rate, answers],
  ['Memory', bytes, memory],
  ['Errors per second, by code', rate, rates('trawl_errors_total', 'code')],
];

let readings = [];
let charts;
let isPaused = false;
let tiles;

export async function open(panel, _parameters, signal) {
  await Promise.all(['uplot.css', 'live.css', 'uplot.js'].map(load));
  if (signal.aborted) return;
  if (charts === undefined) build(panel);
  await read(signal);
}

function build(panel) {
  charts = CHARTS.map(([title, format]) => new LiveChart(title, format, { inBytes: format === bytes }));
  tiles = make('dl', { class: 'tiles', 'aria-label': 'Now' });
  const choice = make('div', { class: 'choice', role: 'group', 'aria-label': 'Readings' });
  const values = [
    [false, 'Every 2 s'],
    [true, 'Paused'],
  ];
  fillChoice(choice, values, false, (value) => {
    isPaused = value;
  });
  const head = make('div', { class: 'live-head' }, make('h1', {}, 'What the server does now'), choice);
  panel.replaceChildren(head, tiles, make('div', { class: 'charts' }, ...charts.map(({ node }) => node)));
  // Paper has the colours of the light scheme.
  for (const media of ['(prefers-color-scheme: dark)', 'print']) {
    matchMedia(media).addEventListener('change', () => {
      for (const chart of charts) chart.redraw();
    });
  }
}

/** Reads every two seconds, until the signal is aborted. */
async function read(signal) {
  if (signal.aborted) return;
  try {
    if (!isPaused && !document.hidden) {
      const metrics = parseMetrics(await getText('/metrics', { signal }));
      if (signal.aborted) return;
      readings = [...readings, { time: Date.now() / 1000, metrics }].slice(-KEPT);
      hideError();
      show();
    }
  } catch (error) {
    if (signal.aborted) return;
    showError(error);
  }
  setTimeout(read, EVERY_MS, signal);
}

function show() {
  const steps = readings.slice(1).map(({ time, metrics }, i) => ({
    now: metrics,
    before: readings[i].metrics,
    seconds: Math.max(0.001, time - readings[i].time),
  }));
  const times = readings.slice(1).map(({ time }) => time);
  for (const [i, [, , values]] of CHARTS.entries()) charts[i].update(times, linesOf(steps.map(values)));
  showTiles(steps.at(-1));
}

/** Values by reading become lines by name; a name that a reading lacks is a gap. */
function linesOf(values) {
  const names = [...new Set(values.flatMap((value) => Object.keys(value)))].sort();
  return Object.fromEntries(names.map((name) => [name, values.map((value) => value[name] ?? null)]));
}

function showTiles(step) {
  const { metrics } = readings.at(-1);
  const past = readings.at(-1 - Math.min(QUANTILE_READINGS, readings.length - 1)).metrics;
  const time = (q) => {
    const seconds = quantile(past, metrics, 'trawl_stage_seconds', { stage: 'total' }, q);
    return seconds === null ? '–' : milliseconds(seconds * 1000);
  };
  const perSecond = (name) => (step === undefined ? '–' : rate(sum(rates(name, 'dialect')(step))));
  const now = (name) => {
    const value = total(metrics, name);
    return Number.isNaN(value) ? '–' : count(value);
  };
  const facts = [
    ['Requests', perSecond('trawl_requests_total')],
    ['Queries', perSecond('trawl_queries_total')],
    ['Median time, last minute', time(0.5)],
    ['p99, last minute', time(0.99)],
    ['In flight', now('trawl_requests_in_flight')],
    ['Connections', now('trawl_connections')],
    ['Answers in the cache', now('trawl_cache_entries')],
    ['Errors since the start', count(total(metrics, 'trawl_errors_total') || 0)],
  ];
  tiles.replaceChildren(...definitions(facts, { class: 'card' }));
}

function answers(step) {
  const gain = (name) => sum(rates(name, 'index')(step));
  return {
    computed: gain('trawl_computed_queries_total'),
    'from the cache': gain('trawl_cached_queries_total'),
    'shared with an equal query': gain('trawl_coalesced_queries_total'),
  };
}

function memory({ now }) {
  const values = {
    process: total(now, 'process_resident_memory_bytes'),
    'index, read by every search': total(now, 'trawl_index_resident_bytes'),
    'answer cache': total(now, 'trawl_cache_bytes'),
    'replies not read yet': total(now, 'trawl_reply_bytes'),
  };
  return Object.fromEntries(Object.entries(values).filter(([, value]) => !Number.isNaN(value)));
}

/** The live tab: what the server does now, from GET /metrics every two seconds. */
import { fillChoice, loadScript, loadStyle, make } from './dom.js';
import { LiveChart } from './live-chart.js';
import { byLabel, gained, parseMetrics, quantile, quotients, total } from './metrics-text.js';
import { getText, hideError, showError } from './server.js';
import { bytes } from './units.js';

const EVERY_MS = 2000;
/** Five minutes of readings. */
const KEPT = 150;
/** The quantiles are those of the last minute. */
const QUANTILE_READINGS = 30;

const rate = (value) => `${value >= 100 ? value.toFixed(0) : Number(value.toPrecision(2))}/s`;
const count = (value) => Number(value.toPrecision(3)).toLocaleString('en');
const milliseconds = (value) => `${value >= 100 ? value.toFixed(0) : Number(value.toPrecision(2))} ms`;
const perSecond = (values, seconds) => mapped(values, (value) => value / seconds);

/** The charts: title, format, and the values of one reading by name. */
const CHARTS = [
  [
    'Requests per second, by dialect of the client',
    rate,
    ({ before, now, seconds }) => perSecond(gained(before, now, 'trawl_requests_total', 'dialect'), seconds),
  ],
  ['Time of a request by stage, mean', milliseconds, stageTimes],
  ['Queries waiting, by stage', count, ({ now }) => byLabel(now, 'trawl_queue_queries', 'stage', Math.max)],
  ['Queries per batch, mean', count, batchSizes],
  ['Queries by where their answer comes from', rate, answers],
  ['Memory', bytes, memory],
  [
    'Errors per second, by code',
    rate,
    ({ before, now, seconds }) => perSecond(gained(before, now, 'trawl_errors_total', 'code'), seconds),
  ],
];

let readings = [];
let charts;
let timer;
let isPaused = false;
let tiles;
/** Aborted when the tab is left or opened again, with the reading in flight: each opening has its own readings, one after another. */
let opening = new AbortController();

export async function open(panel) {
  close();
  opening = new AbortController();
  const { signal } = opening;
  await Promise.all([loadStyle('uplot.css'), loadStyle('live.css'), loadScript('uplot.js')]);
  if (signal.aborted) return;
  if (charts === undefined) build(panel);
  await read(signal);
}

export function close() {
  opening.abort();
  clearTimeout(timer);
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

async function read(signal) {
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
  timer = setTimeout(read, EVERY_MS, signal);
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
  const sum = (name, label) => Object.values(gained(step.before, step.now, name, label)).reduce((a, b) => a + b, 0);
  const now = (name) => {
    const value = total(metrics, name);
    return Number.isNaN(value) ? '–' : count(value);
  };
  const facts = [
    ['Requests', step && rate(sum('trawl_requests_total', 'dialect') / step.seconds)],
    ['Queries', step && rate(sum('trawl_queries_total', 'dialect') / step.seconds)],
    ['Median time, last minute', time(0.5)],
    ['p99, last minute', time(0.99)],
    ['In flight', now('trawl_requests_in_flight')],
    ['Connections', now('trawl_connections')],
    ['Answers in the cache', now('trawl_cache_entries')],
    ['Errors since the start', count(total(metrics, 'trawl_errors_total') || 0)],
  ];
  tiles.replaceChildren(
    ...facts.map(([name, value]) => make('div', { class: 'card' }, make('dt', {}, name), make('dd', {}, value ?? '–'))),
  );
}

function stageTimes({ before, now }) {
  const [sums, counts] = ['sum', 'count'].map((part) => gained(before, now, `trawl_stage_seconds_${part}`, 'stage'));
  return quotients(sums, counts, 1000);
}

function batchSizes({ before, now }) {
  const [queries, batches] = ['trawl_batch_queries_total', 'trawl_batches_total'].map((name) =>
    gained(before, now, name, 'stage'),
  );
  return quotients(queries, batches);
}

function answers({ before, now, seconds }) {
  const gain = (name) => Object.values(gained(before, now, name, 'index')).reduce((a, b) => a + b, 0) / seconds;
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

function mapped(values, change) {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]));
}

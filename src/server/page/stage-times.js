/** How long a search took, by stage. */
import { make } from './dom.js';
import { counted } from './units.js';

const SERVER_STAGES = ['queue', 'embed', 'search', 'fetch', 'rerank', 'reply'];
const STAGES = [...SERVER_STAGES.map((name) => [name, name]), ['rest', 'network and waiting']];

/** Leaves out stages that took no time: an index of words embeds nothing. `isShort`: the times stay for pointer and screen reader. */
export function stageTimes({ result, timing, roundTripMs }, { isShort }) {
  const ms = stageMs(timing, roundTripMs);
  const stages = STAGES.filter(([name]) => ms[name] > 0);
  const passages = counted(result.hits.length, 'passage');
  const bar = make('div', { class: 'bar', 'aria-hidden': 'true' });
  for (const [name, label] of stages) {
    const part = make('span', { class: name, title: `${label} ${milliseconds(ms[name])}` });
    part.style.flexGrow = `${ms[name]}`;
    bar.append(part);
  }
  const entries = stages.map(([name, label]) => {
    const swatch = make('span', { class: `swatch ${name}` });
    return make('div', {}, make('dt', {}, swatch, label), make('dd', {}, milliseconds(ms[name])));
  });
  return make(
    'div',
    { class: 'timing' },
    make('p', { class: 'summary' }, `${passages} in ${milliseconds(roundTripMs)}${isShort ? '' : ' (round trip)'}`),
    bar,
    make('dl', { class: isShort ? 'stages visually-hidden' : 'stages' }, ...entries),
  );
}

/** The colours of the bars of several lists. A screen reader has the names in each list. */
export function stageKey(lists) {
  const all = lists.map(({ timing, roundTripMs }) => stageMs(timing, roundTripMs));
  const names = STAGES.filter(([name]) => all.some((ms) => ms[name] > 0)).map(([name, label]) =>
    make('span', {}, make('span', { class: `swatch ${name}` }), label),
  );
  return make('p', { class: 'stages stage-key', 'aria-hidden': 'true' }, 'Time by stage:', ...names);
}

function stageMs(timing, roundTripMs) {
  const ms = Object.fromEntries(
    [...timing.matchAll(/(\w+);dur=([\d.]+)/g)].map(([, name, value]) => [name, Number(value)]),
  );
  const inStages = SERVER_STAGES.reduce((sum, name) => sum + (ms[name] ?? 0), 0);
  return { ...ms, rest: Math.max(0, roundTripMs - inStages) };
}

function milliseconds(value) {
  return `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ms`;
}

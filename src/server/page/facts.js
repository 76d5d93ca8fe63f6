/** What the server says about itself: the facts of the index in the header, and the details that the tabs need. */
import { byId, definitions, make } from './dom.js';
import { base, getJson, pathOf } from './server.js';

/** Facts of GET /readyz, once the server is ready; `null` before. */
let ready = null;
let details;
const listeners = [];
/** Settled when the server has answered once, ready or not. */
const { promise: asked, resolve: settle } = Promise.withResolvers();

export { asked };

export function readyFacts() {
  return ready;
}

export function onReady(listener) {
  listeners.push(listener);
  if (ready !== null) listener(ready);
}

/** Tells the listeners again, after the reader gave a key: without one, the server does not describe its indexes. */
export function tellListeners() {
  if (ready !== null) for (const listener of listeners) listener(ready);
}

/** The entry of GET /v1/indexes for the index of this page; `null` if it is a group, or if the server refuses. */
export async function indexDetails() {
  const { indexes = [] } = (await allIndexes()) ?? {};
  return indexes.find(({ name }) => name === ready?.index) ?? null;
}

/** The reply of GET /v1/indexes; `null` if the server refuses. `fresh`: asks again, because indexes are reloaded. */
export function allIndexes({ fresh = false } = {}) {
  if (fresh) details = undefined;
  if (details !== undefined) return details;
  const asking = getJson('/v1/indexes', { prefix: '' }).catch(() => {
    if (details === asking) details = undefined;
    return null;
  });
  details = asking;
  return asking;
}

/** Shows the index in the header, or the progress of the start until the server is ready. */
export async function showFacts() {
  try {
    const response = await fetch(`${base}/readyz`, { cache: 'no-store' });
    const facts = await response.json();
    settle();
    if (facts.status !== 'ready') {
      showList([['server', `${facts.status}: ${facts.progress ?? 'reload the index'}`]]);
      setTimeout(showFacts, 1000);
      return;
    }
    ready = facts;
    showList([
      ['index', indexChoice(facts)],
      ['passages', (facts.rows - facts.deleted_rows).toLocaleString('en')],
      facts.model === null ? ['ranking', 'BM25'] : ['model', facts.model],
    ]);
    tellListeners();
  } catch {
    settle();
    showList([['server', 'not reachable']]);
    setTimeout(showFacts, 5000);
  }
}

/** The name of the index, or a choice if the server has several. */
function indexChoice({ index, indexes = [] }) {
  if (indexes.length < 2 || !indexes.some(({ name }) => name === index)) return index;
  const options = indexes.map(({ name }) => make('option', { selected: name === index }, name));
  const go = ({ target }) => location.assign(`${pathOf(target.value)}/${location.search}`);
  return make('select', { 'aria-label': 'Index', onchange: go }, ...options);
}

function showList(facts) {
  byId('facts').replaceChildren(...definitions(facts));
}

/** Lists of hits side by side. A passage says where else it was found, and is marked in all lists at once. */
import { make } from './dom.js';
import { markWords, titleAndText, wordMatcher } from './highlight.js';
import { neighbourPart } from './neighbours.js';
import { scoreExplanation } from './score-explanation.js';
import { messageOf } from './server.js';
import { stageKey, stageTimes } from './stage-times.js';

/** Texts longer than this are cut to a few lines, sooner where several lists share the width. */
const LONG_TEXT = { several: 320, only: 3000 };

/**
 * `lists` have `label`, `mode` and `metric`, and `result` with `timing` or `error`. `words` of the query are marked in lists without terms;
 * `similar` searches for a text.
 */
export function showLists(container, lists, options) {
  const places = placesByPassage(lists);
  const isOnly = lists.length === 1;
  container.classList.toggle('several', !isOnly);
  container.replaceChildren(...lists.map((list) => column(list, { ...options, lists, places, isOnly })));
  container.parentElement.querySelector('.stage-key')?.remove();
  const timed = lists.filter(({ result }) => result !== undefined);
  if (!isOnly && timed.length > 0) container.before(stageKey(timed));
  container.onpointerover = (event) => markEverywhere(container, event.target);
  container.onfocusin = (event) => markEverywhere(container, event.target);
  container.onpointerleave = () => markEverywhere(container, null);
}

/** A passage is the same in two lists if index and row are equal; in lists of different indexes, if its id and text are. */
function passageKey({ list, hit }) {
  return list.key === undefined ? `${hit.index ?? ''}/${hit.row}` : list.key(hit);
}

function placesByPassage(lists) {
  const places = new Map();
  for (const list of lists) {
    for (const [i, hit] of (list.result?.hits ?? []).entries()) {
      const key = passageKey({ list, hit });
      places.set(key, [...(places.get(key) ?? []), { list, rank: i + 1 }]);
    }
  }
  return places;
}

function column(list, options) {
  const { label, error, result } = list;
  const heading = options.isOnly
    ? make('h2', { class: 'visually-hidden' }, label)
    : make('h2', { class: 'column-title' }, swatch(list), label);
  if (error !== undefined) {
    const { text, code } = messageOf(error);
    const line = code === undefined ? null : make('span', { class: 'code' }, code);
    const notice = make('div', { class: 'notice error' }, text, line);
    return make('section', { class: 'column', 'aria-label': label }, heading, notice);
  }
  const items = result.hits.map((hit, i) => item(hit, i + 1, list, options));
  if (items.length === 0) items.push(make('li', { class: 'nothing' }, 'No passages.'));
  const times = stageTimes(list, { isShort: !options.isOnly });
  const attributes = { class: 'column', 'aria-label': `Results of ${label}` };
  return make('section', attributes, heading, times, make('ol', { class: 'results' }, ...items));
}

function swatch({ mode }) {
  return make('span', { class: `swatch ${mode ?? ''}`, 'aria-hidden': 'true' });
}

function item(hit, rank, list, options) {
  const { title, text } = titleAndText(hit);
  const key = passageKey({ list, hit });
  const matcher = wordMatcher(hit.terms, options.words);
  const body = make('p', { class: 'text', dir: 'auto' }, ...markWords(text, matcher));
  const heading = make('h3', { dir: 'auto' }, ...markWords(title === '' ? 'Untitled' : title, matcher));
  const figure = shownScore(hit.score);
  const score = make('summary', { class: 'score', 'aria-label': `${figure}, the score. Why?` }, figure);
  const foot = make(
    'p',
    { class: 'foot-line' },
    hit.id === undefined || hit.id === null ? null : make('span', { class: 'id' }, `id ${hit.id}`),
    hit.index === undefined ? null : make('span', { class: 'id' }, hit.index),
    hit.distractor ? make('span', { class: 'badge' }, 'mixed in on purpose') : null,
    options.isOnly ? null : elsewhere(options.places.get(key), list),
  );
  const similar = options.similar && (() => options.similar(text.trim() === '' ? title : text));
  const parts = [
    make('div', { class: 'passage-head' }, heading),
    make('details', { class: 'why' }, score, scoreExplanation(hit, list)),
    ...passageText(body, text, options.isOnly),
    foot,
    neighbourPart(hit, list, similar),
  ];
  const place = make('span', { class: 'rank' }, `${rank}`);
  return make('li', { 'data-passage': key }, place, make('div', { class: 'hit' }, ...parts));
}

function passageText(body, text, isOnly) {
  if (text.length <= LONG_TEXT[isOnly ? 'only' : 'several']) return [body];
  body.classList.add('cut');
  body.classList.toggle('long', text.length > LONG_TEXT.only);
  const button = make('button', { type: 'button', class: 'link', 'aria-expanded': 'false' }, 'Whole text');
  button.addEventListener('click', () => {
    const isCut = body.classList.toggle('cut');
    button.textContent = isCut ? 'Whole text' : 'Less';
    button.setAttribute('aria-expanded', String(!isCut));
  });
  return [body, button];
}

/** Where the other lists have the passage. */
function elsewhere(places, own) {
  const others = places.filter(({ list }) => list !== own);
  if (others.length === 0) return make('span', { class: 'badge only' }, 'only here');
  const badges = others.map(({ list, rank }) =>
    make('span', { class: 'badge' }, swatch(list), `${list.label} ${rank}`),
  );
  return make('span', { class: 'badges', title: 'Rank of the passage in the other lists' }, 'also ', ...badges);
}

function markEverywhere(container, target) {
  if (!container.classList.contains('several')) return;
  const key = target?.closest?.('[data-passage]')?.dataset.passage;
  for (const entry of container.querySelectorAll('[data-passage]')) {
    entry.classList.toggle('same', key !== undefined && entry.dataset.passage === key);
  }
}

function shownScore(score) {
  if (score === null) return '–';
  return Math.abs(score) >= 100 ? score.toFixed(1) : score.toFixed(4);
}

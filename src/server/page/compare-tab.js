/** The compare tab: one question in two indexes, or in two modes of one index. */
import { make, say } from './dom.js';
import { allIndexes } from './facts.js';
import { showLists } from './result-lists.js';
import { MODE_NAMES } from './search-form.js';
import { hideError, pathOf, searchList, showError } from './server.js';
import { remember } from './tabs.js';

let fields;
/** The signal of the last opening, and the comparison that was begun last. */
let opened;
let running;

export async function open(panel, parameters, signal) {
  opened = signal;
  const listed = await allIndexes();
  if (signal.aborted) return;
  if (listed === null) throw new Error('The server does not list its indexes. Does it require an API key?');
  const sides = listed.indexes.flatMap(({ name, modes, metric }) => modes.map((mode) => ({ name, mode, metric })));
  if (fields === undefined) build(panel);
  fill(parameters, sides);
  if (hasNoQuery()) fields.answer.hidden = true;
  else await compare();
}

function hasNoQuery() {
  return fields.question.value.trim() === '' && fields.sub.value.trim() === '';
}

function build(panel) {
  const text = (id, label, placeholder) => {
    const input = make('input', { id, type: 'search', dir: 'auto', spellcheck: 'false', placeholder });
    return [input, make('div', { class: 'field grow' }, make('label', { for: id }, label), input)];
  };
  const choice = (id, label) => {
    const select = make('select', { id });
    return [select, make('div', { class: 'field' }, make('label', { for: id }, label), select)];
  };
  const [question, questionField] = text('compare-question', 'Question', 'Ask in natural language');
  const [sub, subField] = text('compare-sub', 'Agent’s sub-query', 'Optional');
  const [first, firstField] = choice('compare-a', 'Compare');
  const [second, secondField] = choice('compare-b', 'with');
  const topk = make('input', { id: 'compare-k', type: 'number', min: '1', max: '100', value: '10' });
  const topkField = make('div', { class: 'field count' }, make('label', { for: 'compare-k' }, 'Results'), topk);
  const summary = make('p', { class: 'embedded' });
  const results = make('div', { class: 'columns' });
  const answer = make('section', { hidden: true, 'aria-label': 'Comparison' }, summary, results);
  fields = { question, sub, first, second, topk, summary, results, answer, sides: [] };
  const submit = make('button', { type: 'submit' }, 'Compare');
  const form = make(
    'form',
    { class: 'card', autocomplete: 'off' },
    make('div', { class: 'row' }, questionField, subField),
    make('div', { class: 'row' }, firstField, secondField, topkField, submit),
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (hasNoQuery()) return question.focus();
    remember('compare', linkParameters());
    compare();
  });
  panel.replaceChildren(make('h1', {}, 'One question, two rankings'), form, answer);
}

function fill(parameters, sides) {
  fields.question.value = parameters.get('q') ?? '';
  fields.sub.value = parameters.get('s') ?? '';
  fields.topk.value = parameters.get('k') ?? '10';
  const known = sides.map(({ name, mode }) => `${name}:${mode}`);
  fields.sides = sides;
  for (const select of [fields.first, fields.second]) {
    const options = sides.map((side, i) => make('option', { value: known[i] }, sideName(side)));
    select.replaceChildren(...options);
  }
  const chosen = (name, usual) => (known.includes(parameters.get(name)) ? parameters.get(name) : usual);
  fields.first.value = chosen('a', known[0]);
  fields.second.value = chosen('b', known[1] ?? known[0]);
}

function linkParameters() {
  const { question, sub, first, second, topk } = fields;
  const link = new URLSearchParams();
  if (question.value !== '') link.set('q', question.value);
  if (sub.value !== '') link.set('s', sub.value);
  link.set('a', first.value);
  link.set('b', second.value);
  if (topk.value !== '10') link.set('k', topk.value);
  return link;
}

async function compare() {
  hideError();
  running?.abort();
  running = new AbortController();
  const signal = AbortSignal.any([opened, running.signal]);
  const chosen = [fields.first, fields.second].map(({ value }) =>
    fields.sides.find(({ name, mode }) => `${name}:${mode}` === value),
  );
  const sameIndex = chosen[0].name === chosen[1].name;
  const lists = await Promise.all(chosen.map((side) => searchSide(side, sameIndex, signal)));
  if (signal.aborted) return;
  fields.answer.hidden = lists.every(({ error }) => error !== undefined);
  if (fields.answer.hidden) return showError(lists[0].error);
  const words = `${fields.question.value} ${fields.sub.value}`;
  showLists(fields.results, lists, { words });
  fields.summary.textContent = lists.every(({ error }) => error === undefined) ? summaryOf(lists) : '';
  say(fields.summary.textContent);
}

async function searchSide({ name, mode, metric }, sameIndex, signal) {
  const prefix = pathOf(name);
  const label = sameIndex ? MODE_NAMES[mode] : sideName({ name, mode });
  // Rows of two indexes say nothing: the same passage has the same id and text.
  const key = sameIndex ? ({ row }) => `${row}` : ({ id, text }) => JSON.stringify([id ?? null, text]);
  return { label, mode, metric, key, prefix, ...(await searchList(requestBody(mode), { prefix, signal })) };
}

function requestBody(mode) {
  const [question, sub] = [fields.question.value, fields.sub.value];
  const hasBoth = question.trim() !== '' && sub.trim() !== '';
  const query = hasBoth ? { question, query: sub } : sub.trim() === '' ? question : sub;
  const k = Number(fields.topk.value);
  return { queries: [query], mode, k: k > 0 ? k : undefined, explain: mode === 'dense' ? undefined : true };
}

/** How many passages both lists have, and where they part. */
function summaryOf(lists) {
  const [a, b] = lists.map(({ result, key }) => result.hits.map(key));
  const both = a.filter((passage) => b.includes(passage)).length;
  const parts = [...a.keys(), ...b.keys()].find((i) => a[i] !== b[i]);
  const most = Math.max(a.length, b.length);
  const where = parts === undefined ? 'The order is the same.' : `The first difference is at rank ${parts + 1}.`;
  return `${both} of ${most} passages are in both lists. ${where}`;
}

function sideName({ name, mode }) {
  return `${name} · ${MODE_NAMES[mode] ?? mode}`;
}

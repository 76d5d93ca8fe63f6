/** The search tab: sends the form to POST /v1/search, in one mode or in several side by side, and lists the passages. */
import { byId, copyText, make, say } from './dom.js';
import { asked, onReady, readyFacts } from './facts.js';
import { showRequestCode } from './request-code.js';
import { showLists } from './result-lists.js';
import {
  chosenModes,
  fitForm,
  formParameters,
  hasQuery,
  MODE_NAMES,
  queryWords,
  readForm,
  requestBody,
} from './search-form.js';
import { hideError, searchList, showError } from './server.js';
import { goTo, remember } from './tabs.js';
import { counted } from './units.js';

/** Questions of the sample corpus; the third has a sub-query. */
const EXAMPLES = [
  { q: 'What is the deepest river known?' },
  { q: 'Where do the White Nile and the Blue Nile join?' },
  { q: 'Where was the designer of the Sydney Opera House born?', s: 'birthplace of the architect' },
];

const CUTS = {
  tail: 'The query exceeds the model’s token limit; its end was ignored.',
  history: 'The query exceeds the model’s token limit; the oldest queries of the history were ignored.',
  question: 'The query exceeds the model’s token limit; the end of the question was ignored, and the history.',
  'question-and-tail': 'The query exceeds the model’s token limit; only the first part of the sub-query was embedded.',
};

/** The signal of the last opening, and the search that was begun last. */
let opened;
let running;
let isInstalled = false;

/** Fills the form from the address, and searches. */
export async function open(_panel, parameters, signal) {
  install();
  opened = signal;
  readForm(parameters);
  if (!hasQuery()) return showEmpty();
  // The modes of the index decide which searches are made.
  await asked;
  if (signal.aborted) return;
  readForm(parameters);
  await search();
}

function install() {
  if (isInstalled) return;
  isInstalled = true;
  byId('form').addEventListener('submit', (event) => {
    event.preventDefault();
    remember('search', formParameters());
    search();
  });
  byId('copy-link').addEventListener('click', ({ target }) => copyText(target, location.href));
  byId('examples').replaceChildren(...EXAMPLES.map(example));
  onReady(fitForm);
}

async function search() {
  hideError();
  if (!hasQuery()) {
    showEmpty();
    byId('question').focus();
    return;
  }
  running?.abort();
  running = new AbortController();
  const signal = AbortSignal.any([opened, running.signal]);
  byId('answer').setAttribute('aria-busy', 'true');
  say('Searching');
  const modes = chosenModes();
  const lists = await Promise.all(
    (modes.length === 0 ? [undefined] : modes).map(async (mode) => {
      const body = requestBody(mode);
      const list = { mode, body, metric: readyFacts()?.metric, ...(await searchList(body, { signal })) };
      return { ...list, label: MODE_NAMES[list.mode] ?? '' };
    }),
  );
  if (signal.aborted) return;
  byId('answer').removeAttribute('aria-busy');
  showAnswer(lists);
}

function showAnswer(lists) {
  const answered = lists.filter(({ result }) => result !== undefined);
  byId('empty').hidden = true;
  byId('answer').hidden = answered.length === 0;
  if (answered.length === 0) {
    say('');
    showError(lists[0].error);
    return;
  }
  showLists(byId('results'), lists, { words: queryWords(), similar });
  showEmbedded(answered);
  showRequestCode(answered.at(-1).body);
  // Several lists are several requests, of which the code has one.
  const ofOne = answered.length > 1 ? ` (${answered.at(-1).label})` : '';
  byId('request-title').textContent = `The same request as code${ofOne}`;
  say(answered.map(({ label, result }) => `${counted(result.hits.length, 'passage')} by ${label}`).join(', '));
}

/** What the encoder read, and what truncation removed from it. */
function showEmbedded(lists) {
  const { embedded } = (lists.find(({ mode }) => mode !== 'bm25') ?? lists[0]).result;
  const isWords = lists.every(({ mode }) => mode === 'bm25');
  const tokens = embedded.tokens === null ? '' : ` (${counted(embedded.tokens, isWords ? 'term' : 'token')})`;
  const what = isWords ? 'The words of ' : 'The encoder read ';
  byId('embedded').replaceChildren(what, make('bdi', {}, make('q', {}, embedded.text)), tokens);
  byId('embedded').hidden = false;
  byId('truncated').hidden = CUTS[embedded.cut] === undefined;
  byId('truncated').textContent = CUTS[embedded.cut] ?? '';
}

/** Searches for what is like a passage: its text becomes the question. */
function similar(text) {
  goTo('search', { q: text.slice(0, 1000) });
  scrollTo({ top: 0 });
}

function example({ q, s }) {
  const search = () => {
    readForm(new URLSearchParams(s === undefined ? { q } : { q, s }));
    byId('form').requestSubmit();
  };
  const sub = s === undefined ? null : make('span', { class: 'sub' }, `  +  ${s}`);
  return make('li', {}, make('button', { type: 'button', onclick: search }, make('span', {}, q), sub));
}

function showEmpty() {
  running?.abort();
  byId('answer').removeAttribute('aria-busy');
  byId('answer').hidden = true;
  byId('empty').hidden = false;
  say('');
}

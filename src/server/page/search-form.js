/** The form of the search tab: its fields, the address that stands for them, and the request that they make. */
import { byId, make } from './dom.js';
import { indexDetails, readyFacts } from './facts.js';

export const MODE_NAMES = { dense: 'Dense', bm25: 'BM25', hybrid: 'Hybrid' };

const HISTORY_HELP = 'Sent with the query, but this index embeds only question and query.';

const field = (name) => byId(name);

/** Fills the form from ?q=…&s=…&h=…&k=…&mode=…&filter=…&rerank=1. */
export function readForm(parameters) {
  field('question').value = parameters.get('q') ?? '';
  field('sub').value = parameters.get('s') ?? '';
  field('topk').value = parameters.get('k') ?? '5';
  field('history').value = parameters.getAll('h').join('\n');
  field('filter').value = parameters.get('filter') ?? '';
  field('rerank').checked = parameters.get('rerank') === '1';
  if (['h', 'filter', 'rerank'].some((name) => parameters.has(name))) field('more').open = true;
  field('mode').dataset.wanted = parameters.get('mode') ?? '';
  chooseMode();
}

export function formParameters() {
  const link = new URLSearchParams();
  const set = (name, value, usual = '') => {
    if (value !== usual) link.set(name, value);
  };
  set('q', field('question').value);
  set('s', field('sub').value);
  for (const query of historyQueries()) link.append('h', query);
  set('k', field('topk').value, '5');
  set('mode', field('mode').value, usualMode());
  set('filter', field('filter').value.trim());
  if (field('rerank').checked) link.set('rerank', '1');
  return link;
}

export function hasQuery() {
  return [field('question'), field('sub')].some(({ value }) => value.trim() !== '');
}

/** The sub-query with the question as its question; without a sub-query, the question is the query. */
function queryOf() {
  const [question, sub] = [field('question').value, field('sub').value];
  const past = historyQueries();
  if (sub.trim() === '') return past.length === 0 ? question : { query: question, history: past };
  return {
    ...(question.trim() === '' ? {} : { question }),
    ...(past.length === 0 ? {} : { history: past }),
    query: sub,
  };
}

/** The modes to search in; several are shown side by side. Empty: that of the server. */
export function chosenModes() {
  const { modes = [] } = readyFacts() ?? {};
  const wanted = field('mode').value || field('mode').dataset.wanted;
  if (wanted === 'all' || (wanted === '' && modes.length > 1)) return sortedModes(modes);
  return wanted === '' ? [] : [wanted];
}

/** The body of POST /v1/search. */
export function requestBody(mode) {
  const topk = field('topk').value;
  const filter = field('filter').value.trim();
  const usual = readyFacts()?.modes ?? [];
  const ranked = mode ?? usual[0];
  return {
    queries: [queryOf()],
    ...(topk === '' ? {} : { k: Number(topk) }),
    ...(mode === undefined || (usual.length === 1 && mode === usual[0]) ? {} : { mode }),
    ...(filter === '' ? {} : { filter }),
    ...(field('rerank').checked ? { rerank: true } : {}),
    ...(ranked === 'bm25' || ranked === 'hybrid' ? { explain: true } : {}),
  };
}

/** The words of the query, for passages that a vector found. */
export function queryWords() {
  return `${field('question').value} ${field('sub').value}`;
}

/** Adapts the form to the index: its modes, limits, columns and reranker. */
export async function fitForm(facts) {
  field('topk').max = String(Math.min(100, facts.max_topk));
  if (facts.modes.length > 1) {
    const options = [['all', 'All, side by side'], ...sortedModes(facts.modes).map((mode) => [mode, MODE_NAMES[mode]])];
    field('mode').replaceChildren(...options.map(([value, label]) => make('option', { value }, label)));
    chooseMode();
  }
  field('mode-field').hidden = facts.modes.length < 2;
  if (facts.model === null)
    field('sub-help').textContent = 'With a sub-query, the server searches for the words of both.';
  const details = await indexDetails();
  field('filter-help').textContent = columnsHelp(details?.columns ?? []);
  const { queryTemplate = '' } = details?.model ?? {};
  field('history-help').textContent = queryTemplate.includes('history') ? '' : HISTORY_HELP;
  field('rerank-field').hidden = field('rerank-word').hidden = !details?.reranker;
  if (details?.reranker) field('rerank-label').textContent = `Order the hits with ${details.reranker.name}`;
}

function columnsHelp(columns) {
  if (columns.length === 0) return 'This index has no columns to filter by (trawl index --column).';
  return `Columns: ${columns.map(({ name, type }) => `${name} (${type})`).join(', ')}`;
}

function chooseMode() {
  const select = field('mode');
  const wanted = select.dataset.wanted || usualMode();
  if ([...select.options].some(({ value }) => value === wanted)) select.value = wanted;
}

function usualMode() {
  return (readyFacts()?.modes.length ?? 0) > 1 ? 'all' : '';
}

function sortedModes(modes) {
  return Object.keys(MODE_NAMES).filter((mode) => modes.includes(mode));
}

function historyQueries() {
  return field('history')
    .value.split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

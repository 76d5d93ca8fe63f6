/** The form of the search tab: its fields, the address that stands for them, and the request that they make. */
import { byId, make } from './dom.js';
import { indexDetails, readyFacts } from './facts.js';

export const MODE_NAMES = { dense: 'Dense', bm25: 'BM25', hybrid: 'Hybrid' };

const HISTORY_HELP = 'Sent with the query, but this index embeds only question and query.';

/** Fills the form from ?q=…&s=…&h=…&k=…&mode=…&filter=…&rerank=1. */
export function readForm(parameters) {
  byId('question').value = parameters.get('q') ?? '';
  byId('sub').value = parameters.get('s') ?? '';
  byId('topk').value = parameters.get('k') ?? '5';
  byId('history').value = parameters.getAll('h').join('\n');
  byId('filter').value = parameters.get('filter') ?? '';
  byId('rerank').checked = parameters.get('rerank') === '1';
  if (['h', 'filter', 'rerank'].some((name) => parameters.has(name))) byId('more').open = true;
  byId('mode').dataset.wanted = parameters.get('mode') ?? '';
  chooseMode();
}

export function formParameters() {
  const link = new URLSearchParams();
  const set = (name, value, usual = '') => {
    if (value !== usual) link.set(name, value);
  };
  set('q', byId('question').value);
  set('s', byId('sub').value);
  for (const query of historyQueries()) link.append('h', query);
  set('k', byId('topk').value, '5');
  set('mode', byId('mode').value, usualMode());
  set('filter', byId('filter').value.trim());
  if (byId('rerank').checked) link.set('rerank', '1');
  return link;
}

export function hasQuery() {
  return [byId('question'), byId('sub')].some(({ value }) => value.trim() !== '');
}

/** The sub-query with the question as its question; without a sub-query, the question is the query. */
function queryOf() {
  const [question, sub] = [byId('question').value, byId('sub').value];
  const past = historyQueries();
  const history = past.length === 0 ? undefined : past;
  if (sub.trim() === '') return history === undefined ? question : { query: question, history };
  return { question: question.trim() === '' ? undefined : question, history, query: sub };
}

/** The modes to search in; several are shown side by side. Empty: the server's default. */
export function chosenModes() {
  const { modes = [] } = readyFacts() ?? {};
  const wanted = byId('mode').value || byId('mode').dataset.wanted;
  if (wanted === 'all' || (wanted === '' && modes.length > 1)) return sortedModes(modes);
  return wanted === '' ? [] : [wanted];
}

/** The body of POST /v1/search. */
export function requestBody(mode) {
  const topk = byId('topk').value;
  const filter = byId('filter').value.trim();
  const usual = readyFacts()?.modes ?? [];
  const ranked = mode ?? usual[0];
  // Fields that are undefined are absent from the request and from its code.
  return {
    queries: [queryOf()],
    k: topk === '' ? undefined : Number(topk),
    mode: usual.length === 1 && mode === usual[0] ? undefined : mode,
    filter: filter === '' ? undefined : filter,
    rerank: byId('rerank').checked || undefined,
    explain: ranked === 'bm25' || ranked === 'hybrid' || undefined,
  };
}

/** The words of the query, for passages that a vector found. */
export function queryWords() {
  return `${byId('question').value} ${byId('sub').value}`;
}

/** Adapts the form to the index: its modes, limits, columns and reranker. */
export async function fitForm(facts) {
  byId('topk').max = String(Math.min(100, facts.max_topk));
  if (facts.modes.length > 1) {
    const options = [['all', 'All, side by side'], ...sortedModes(facts.modes).map((mode) => [mode, MODE_NAMES[mode]])];
    byId('mode').replaceChildren(...options.map(([value, label]) => make('option', { value }, label)));
    chooseMode();
  }
  byId('mode-field').hidden = facts.modes.length < 2;
  if (facts.model === null)
    byId('sub-help').textContent = 'With a sub-query, the server searches for the words of both.';
  const details = await indexDetails();
  byId('filter-help').textContent = columnsHelp(details?.columns ?? []);
  const { queryTemplate = '' } = details?.model ?? {};
  byId('history-help').textContent = queryTemplate.includes('history') ? '' : HISTORY_HELP;
  byId('rerank-field').hidden = byId('rerank-word').hidden = !details?.reranker;
  if (details?.reranker) byId('rerank-label').textContent = `Order the hits with ${details.reranker.name}`;
}

function columnsHelp(columns) {
  if (columns.length === 0) return 'This index has no columns to filter by (trawl index --column).';
  return `Columns: ${columns.map(({ name, type }) => `${name} (${type})`).join(', ')}`;
}

function chooseMode() {
  const select = byId('mode');
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
  return byId('history')
    .value.split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

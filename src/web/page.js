/** The search page: sends the form to POST /retrieve and lists the passages, with textContent and never as HTML. */

/** Questions of the sample corpus; the third has a sub-query. */
const EXAMPLES = [
  { q: 'What is the deepest river known?' },
  { q: 'Where do the White Nile and the Blue Nile join?' },
  { q: 'Where was the designer of the Sydney Opera House born?', s: 'birthplace of the architect' },
];

const STAGES = [
  ['embed', 'embed'],
  ['search', 'search'],
  ['fetch', 'fetch'],
  ['rerank', 'rerank'],
  ['reply', 'reply'],
  ['rest', 'network and waiting'],
];

const byId = (id) => document.getElementById(id);
const form = byId('form');
const question = byId('question');
const sub = byId('sub');
const topk = byId('topk');
const key = byId('key');
/** `/indexes/NAME` on the page of an index other than the default. */
const base = /^(?:\/indexes\/[^/]+)?(?=\/$)/.exec(location.pathname)?.[0] ?? '';
/** Name of the API key in sessionStorage, which the browser keeps only until the tab is closed. */
const KEY_NAME = 'trawl-key';
let running = null;

form.addEventListener('submit', (event) => {
  event.preventDefault();
  if (!byId('key-field').hidden) sessionStorage.setItem(KEY_NAME, key.value.trim());
  remember();
  search();
});
window.addEventListener('popstate', readLink);
byId('copy').addEventListener('click', copyCurl);
if (savedKey() !== '') askForKey();
showExamples();
showFacts();
readLink();

/** Fills the form from ?q=…&s=…&k=… and searches. */
function readLink() {
  const link = new URLSearchParams(location.search);
  question.value = link.get('q') ?? '';
  sub.value = link.get('s') ?? '';
  topk.value = link.get('k') ?? '5';
  if (question.value !== '' || sub.value !== '') search();
  else showEmpty();
}

function remember() {
  const link = new URLSearchParams();
  if (question.value !== '') link.set('q', question.value);
  if (sub.value !== '') link.set('s', sub.value);
  if (topk.value !== '5') link.set('k', topk.value);
  const address = link.size === 0 ? `${base}/` : `${base}/?${link}`;
  if (address !== location.pathname + location.search) history.pushState(null, '', address);
}

/** The sub-query with the question as its question; without a sub-query, the question is the query. */
function requestBody() {
  const hasSub = sub.value.trim() !== '';
  const body = { queries: [hasSub ? sub.value : question.value] };
  if (hasSub && question.value.trim() !== '') body.questions = [question.value];
  return { ...body, topk: topk.value === '' ? null : Number(topk.value), return_scores: true };
}

async function search() {
  if (question.value.trim() === '' && sub.value.trim() === '') {
    showEmpty();
    question.focus();
    return;
  }
  running?.abort();
  const mine = new AbortController();
  running = mine;
  const body = requestBody();
  hideNotices();
  byId('answer').setAttribute('aria-busy', 'true');
  say('Searching');
  const start = performance.now();
  try {
    const response = await fetch(`${base}/retrieve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...keyHeader() },
      body: JSON.stringify(body),
      signal: mine.signal,
    });
    const text = await response.text();
    const roundTripMs = performance.now() - start;
    if (response.status === 401 && running === mine) askForKey().focus();
    if (!response.ok) throw refusal(response.status, text);
    showAnswer(parseKeepingBigIntegers(text), body, response.headers.get('server-timing') ?? '', roundTripMs);
  } catch (error) {
    if (running === mine) showError(error);
  } finally {
    if (running === mine) byId('answer').removeAttribute('aria-busy');
  }
}

function savedKey() {
  return sessionStorage.getItem(KEY_NAME) ?? '';
}

/** No header for an invalid key: other characters can be neither in a header nor in a key. */
function keyHeader() {
  return /^[\x21-\x7e]+$/.test(savedKey()) ? { authorization: `Bearer ${savedKey()}` } : {};
}

function askForKey() {
  byId('key-field').hidden = false;
  key.value = savedKey();
  return key;
}

/** Returns integers beyond 2^53 as text, in browsers whose JSON.parse gives access to the digits. */
function parseKeepingBigIntegers(text) {
  return JSON.parse(text, (_key, value, context) =>
    typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
      ? (context?.source ?? value)
      : value,
  );
}

function refusal(status, text) {
  try {
    const { code, message } = JSON.parse(text).error;
    return Object.assign(new Error(message), { code: `${code} · HTTP ${status}` });
  } catch {
    return new Error(`The server answered with HTTP ${status}.`);
  }
}

function showAnswer(answer, body, serverTiming, roundTripMs) {
  const hits = answer.result[0] ?? [];
  byId('empty').hidden = true;
  byId('answer').hidden = false;
  byId('truncated').hidden = answer.truncated === undefined;
  showTimes(serverTiming, roundTripMs, hits.length);
  const items = hits.map((hit, i) => resultItem(hit, i + 1));
  byId('results').replaceChildren(...(items.length > 0 ? items : [element('li', 'nothing', 'No passages.')]));
  byId('curl').textContent = curlLine(body);
  say(`${hits.length} results`);
}

function resultItem({ document: row, score }, rank) {
  const { title, text } = titleAndText(row);
  const item = document.createElement('li');
  const content = document.createElement('div');
  const head = element('div', 'passage-head');
  const shown = element('span', 'score', score === null ? '–' : score.toFixed(4));
  shown.title = `Score ${score}`;
  head.append(element('h2', '', title === '' ? 'Untitled' : title), shown);
  content.append(head, element('p', '', text));
  if (row.id !== undefined && row.id !== null) content.append(element('p', 'id', `id ${row.id}`));
  item.append(element('span', 'rank', `${rank}`), content);
  return item;
}

/** `text` and `title`, or the first line of `contents` as title, which has double quotes there. */
function titleAndText(row) {
  if (typeof row.text === 'string') return { title: typeof row.title === 'string' ? row.title : '', text: row.text };
  const contents = typeof row.contents === 'string' ? row.contents : JSON.stringify(row);
  const newline = contents.indexOf('\n');
  if (newline === -1) return { title: '', text: contents };
  return { title: contents.slice(0, newline).replace(/^"(.*)"$/, '$1'), text: contents.slice(newline + 1) };
}

/** Leaves out stages that took no time: an index of words embeds nothing. */
function showTimes(serverTiming, roundTripMs, count) {
  const ms = Object.fromEntries(
    [...serverTiming.matchAll(/(\w+);dur=([\d.]+)/g)].map(([, name, value]) => [name, Number(value)]),
  );
  const inStages = STAGES.reduce((sum, [name]) => sum + (ms[name] ?? 0), 0);
  ms.rest = Math.max(0, roundTripMs - inStages);
  const stages = STAGES.filter(([name]) => ms[name] > 0);
  const passages = count === 1 ? '1 passage' : `${count} passages`;
  byId('summary').textContent = `${passages} in ${milliseconds(roundTripMs)} (round trip)`;
  byId('bar').replaceChildren(
    ...stages.map(([name]) => {
      const part = element('span', name);
      part.style.flexGrow = `${ms[name]}`;
      return part;
    }),
  );
  byId('stages').replaceChildren(
    ...stages.map(([name, label]) => {
      const entry = document.createElement('div');
      entry.append(
        element('span', `swatch ${name}`),
        element('dt', '', label),
        element('dd', '', milliseconds(ms[name])),
      );
      return entry;
    }),
  );
}

function milliseconds(value) {
  return `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ms`;
}

/** For a POSIX shell, in which only the quote itself is special within single quotes. */
function curlLine(body) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const ownKey = savedKey() === '' ? '' : " -H 'authorization: Bearer KEY'";
  return `curl -s ${quoted(`${location.origin}${base}/retrieve`)}${ownKey} -H 'content-type: application/json' --data-raw ${quoted(JSON.stringify(body))}`;
}

async function copyCurl() {
  const pre = byId('curl');
  const button = byId('copy');
  try {
    await navigator.clipboard.writeText(pre.textContent);
    button.textContent = 'Copied';
  } catch {
    // The clipboard needs https and permission. Without them, selects the line for Ctrl-C.
    getSelection()?.selectAllChildren(pre);
    button.textContent = 'Selected';
  }
  setTimeout(() => {
    button.textContent = 'Copy';
  }, 1500);
}

function showExamples() {
  const chips = EXAMPLES.map(({ q, s }) => {
    const chip = document.createElement('button');
    chip.type = 'button';
    chip.append(element('span', '', q));
    if (s !== undefined) chip.append(element('span', 'sub', `  +  ${s}`));
    chip.addEventListener('click', () => {
      question.value = q;
      sub.value = s ?? '';
      form.requestSubmit();
    });
    const item = document.createElement('li');
    item.append(chip);
    return item;
  });
  byId('examples').replaceChildren(...chips);
}

/** Shows the index in the header, or the progress of the start until the server is ready. */
async function showFacts() {
  try {
    const response = await fetch(`${base}/readyz`, { cache: 'no-store' });
    const facts = await response.json();
    if (facts.status !== 'ready') {
      showFactList([['server', `${facts.status}: ${facts.progress}`]]);
      setTimeout(showFacts, 1000);
      return;
    }
    topk.max = String(Math.min(100, facts.max_topk));
    showFactList([
      ['index', facts.index],
      ['passages', facts.rows.toLocaleString('en')],
      facts.model === null ? ['ranking', 'BM25'] : ['model', facts.model],
    ]);
    if (facts.model === null) {
      byId('sub-help').textContent = 'With a sub-query, the server searches for the words of both.';
    }
  } catch {
    showFactList([['server', 'not reachable']]);
    setTimeout(showFacts, 5000);
  }
}

function showFactList(facts) {
  byId('facts').replaceChildren(
    ...facts.map(([name, value]) => {
      const entry = document.createElement('div');
      entry.append(element('dt', '', name), element('dd', '', value));
      return entry;
    }),
  );
}

function showError(error) {
  const box = byId('error');
  const unreachable = error instanceof TypeError;
  box.replaceChildren(unreachable ? 'The server cannot be reached. Is it still running?' : error.message);
  if (error.code !== undefined) box.append(element('span', 'code', error.code));
  box.hidden = false;
  byId('empty').hidden = true;
  byId('answer').hidden = true;
  say('');
}

function showEmpty() {
  running?.abort();
  running = null;
  hideNotices();
  byId('answer').hidden = true;
  byId('empty').hidden = false;
  say('');
}

function hideNotices() {
  byId('error').hidden = true;
  byId('truncated').hidden = true;
}

function say(text) {
  byId('status').textContent = text;
}

function element(name, className, text = '') {
  const made = document.createElement(name);
  if (className !== '') made.className = className;
  made.textContent = text;
  return made;
}

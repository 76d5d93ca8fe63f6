/** Requests to the server, with the API key that the reader gave. */
import { byId, make } from './dom.js';
import { parseKeepingBigIntegers } from './json.js';

/** `/indexes/NAME` on the page of an index other than the default, `/views/NAME` on the page of a view. */
export const base = /^(?:\/(?:indexes|views)\/[^/]+)*(?=\/$)/.exec(location.pathname)?.[0] ?? '';

/** Name of the API key in sessionStorage, which the browser keeps only until the tab is closed. */
const KEY_NAME = 'trawl-key';

/** The path of another index of this server, within the view of this page if it has one. */
export function pathOf(index) {
  const view = /^(?:\/views\/[^/]+)*/.exec(base)[0];
  return `${view}/indexes/${encodeURIComponent(index)}`;
}

export function hasKey() {
  return savedKey() !== '';
}

/** Shows the field for the key, and calls `onKey` when the reader gives one. */
export function installKeyForm(onKey) {
  byId('key-form').addEventListener('submit', (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY_NAME, byId('key').value.trim());
    onKey();
  });
  if (hasKey()) askForKey();
}

/** POSTs a JSON body. Rejects with an Error with `code` for a refusal, with a TypeError if the server cannot be reached. */
export async function postJson(path, body, { signal, prefix = base } = {}) {
  const headers = { 'content-type': 'application/json' };
  return answerOf(`${prefix}${path}`, { method: 'POST', headers, body: JSON.stringify(body), signal });
}

/** The list of a search with one query, and its times; or the `error` of a refusal, because other searches may have an answer. */
export async function searchList(body, options) {
  try {
    const { json, timing, roundTripMs } = await postJson('/v1/search', body, options);
    const [result] = json.results;
    if (!result.ok) throw Object.assign(new Error(result.error.message), { code: result.error.code });
    return { mode: json.mode, result, timing, roundTripMs };
  } catch (error) {
    return { error };
  }
}

export async function getJson(path, { prefix = base } = {}) {
  return (await answerOf(`${prefix}${path}`, { cache: 'no-store' })).json;
}

export async function getText(path, { signal } = {}) {
  return (await requested(path, { cache: 'no-store', signal })).text;
}

async function answerOf(url, options) {
  const start = performance.now();
  const { response, text } = await requested(url, options);
  const roundTripMs = performance.now() - start;
  return { json: parseKeepingBigIntegers(text), timing: response.headers.get('server-timing') ?? '', roundTripMs };
}

async function requested(url, options) {
  const response = await fetch(url, { ...options, headers: { ...options.headers, ...keyHeader() } });
  const text = await response.text();
  if (response.status === 401) askForKey();
  if (!response.ok) throw refusal(response.status, text);
  return { response, text };
}

/** What to say about a failed request. */
export function messageOf(error) {
  if (error instanceof TypeError)
    return { text: 'The server cannot be reached. Is it still running?', code: undefined };
  return { text: error.message, code: error.code };
}

export function showError(error) {
  const { text, code = '' } = messageOf(error);
  const box = byId('error');
  // The live tab fails every two seconds: the same error is announced once, and takes the focus once.
  if (!box.hidden && box.textContent === `${text}${code}`) return;
  box.replaceChildren(text, ...(code === '' ? [] : [make('span', { class: 'code' }, code)]));
  box.hidden = false;
  if (error.status === 401) byId('key').focus();
}

export function hideError() {
  byId('error').hidden = true;
}

function savedKey() {
  return sessionStorage.getItem(KEY_NAME) ?? '';
}

/** No header for an invalid key: other characters can be neither in a header nor in a key. */
function keyHeader() {
  return /^[\x21-\x7e]+$/.test(savedKey()) ? { authorization: `Bearer ${savedKey()}` } : {};
}

function askForKey() {
  if (!byId('key-form').hidden) return;
  byId('key-form').hidden = false;
  byId('key').value = savedKey();
}

function refusal(status, text) {
  try {
    const { code, message } = JSON.parse(text).error;
    return Object.assign(new Error(message), { code: `${code} · HTTP ${status}`, status });
  } catch {
    return Object.assign(new Error(`The server answered with HTTP ${status}.`), { status });
  }
}

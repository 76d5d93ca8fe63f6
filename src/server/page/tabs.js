/** The tabs, after the pattern of the ARIA Authoring Practices. `?tab=NAME` in the address opens one. */
import { byId, make } from './dom.js';
import { base, hideError, showError } from './server.js';

/** Name, label and loader of each tab. */
let tabs = [];
/** The last address of each tab, to which it returns. */
const addresses = new Map();
let current;

/**
 * A loader gives the module of its tab, which exports `open(panel, parameters, signal)`. The signal is aborted when the reader leaves the
 * tab or opens it again.
 */
export function startTabs(named) {
  tabs = named;
  const list = byId('tabs');
  for (const [name, label] of tabs.slice(1)) {
    const tab = { id: `tab-${name}`, role: 'tab', 'data-name': label, 'aria-controls': `panel-${name}` };
    list.append(make('button', { type: 'button', ...tab }, label));
    const panel = { id: `panel-${name}`, role: 'tabpanel', 'aria-labelledby': `tab-${name}` };
    document.querySelector('main').append(make('section', { ...panel, tabindex: '-1', hidden: true }));
  }
  list.hidden = tabs.length < 2;
  list.addEventListener('click', ({ target }) => {
    const name = target.closest('[role="tab"]')?.id.slice('tab-'.length);
    if (name !== undefined) go(name);
  });
  list.addEventListener('keydown', moveByKey);
  window.addEventListener('popstate', openAddress);
}

/** Opens the tab that the address names. */
export function openAddress() {
  const parameters = new URLSearchParams(location.search);
  const wanted = parameters.get('tab') ?? 'search';
  const tab = tabs.find(([name]) => name === wanted) ?? tabs[0];
  return show(tab, parameters);
}

/** Writes the tab's state into the address, which is its permalink. */
export function remember(tab, parameters) {
  const link = new URLSearchParams(parameters);
  if (tab !== 'search') link.set('tab', tab);
  const address = link.size === 0 ? `${base}/` : `${base}/?${link}`;
  if (address !== location.pathname + location.search) history.pushState(null, '', address);
  if (current?.name === tab) current.address = address;
}

/** Opens a tab with these parameters. */
export function goTo(tab, parameters) {
  remember(tab, parameters);
  return openAddress();
}

function go(name) {
  if (name === current?.name) return;
  history.pushState(null, '', addresses.get(name) ?? (name === 'search' ? `${base}/` : `${base}/?tab=${name}`));
  openAddress();
}

async function show([name, label, load], parameters) {
  if (current !== undefined) addresses.set(current.name, current.address);
  current?.opening.abort();
  const opening = new AbortController();
  const { signal } = opening;
  current = { name, address: location.pathname + location.search, opening };
  document.title = name === 'search' ? 'Trawl search' : `${label} · Trawl`;
  for (const [other] of tabs) {
    byId(`panel-${other}`).hidden = other !== name;
    const button = byId(`tab-${other}`);
    button.setAttribute('aria-selected', String(other === name));
    button.tabIndex = other === name ? 0 : -1;
  }
  hideError();
  try {
    const { open } = await load();
    if (!signal.aborted) await open(byId(`panel-${name}`), parameters, signal);
  } catch (error) {
    if (!signal.aborted) showError(error);
  }
}

/** Left, right, Home and End move between the tabs, and the tab opens at once. */
function moveByKey(event) {
  const buttons = [...event.currentTarget.querySelectorAll('[role="tab"]')];
  const at = buttons.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + buttons.length, Home: 0, End: buttons.length - 1 }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  const tab = buttons[to % buttons.length];
  tab.focus();
  tab.click();
}

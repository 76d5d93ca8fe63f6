/** The page of a Trawl server. Each file of this folder has one subject; nothing is built or loaded from elsewhere. */
import { byId } from './dom.js';
import { asked, onReady, readyFacts, showFacts, tellListeners } from './facts.js';
import { installKeyForm } from './server.js';
import { openAddress, startTabs } from './tabs.js';

/** Each tab's module is loaded when the tab is opened. */
const TABS = [
  ['search', 'Search', () => import('./search-tab.js')],
  ['compare', 'Compare', () => import('./compare-tab.js')],
  ['index', 'Index', () => import('./index-tab.js')],
  ['live', 'Live', () => import('./live-tab.js')],
  ['trajectories', 'Trajectories', () => import('./trajectories-tab.js')],
];

startTabs(TABS);
installKeyForm(() => {
  tellListeners();
  openAddress();
});
document.addEventListener('keydown', (event) => {
  const writes = event.target.closest?.('input, textarea, select, [contenteditable]');
  if (event.key !== '/' || writes || event.ctrlKey || event.metaKey || event.altKey) return;
  const field = document.querySelector('main > section:not([hidden]) input[type="search"]') ?? byId('tab-search');
  event.preventDefault();
  field.focus();
});
showFacts();
openAddress();
openWhenStarted();

/** A link that was opened while the server started is opened again once it is ready, unless the reader has begun to write. */
async function openWhenStarted() {
  await asked;
  if (readyFacts() !== null) return;
  let isDone = false;
  document.addEventListener('input', () => {
    isDone = true;
  });
  onReady(() => {
    if (!isDone && !byId('error').hidden) openAddress();
    isDone = true;
  });
}

/** The index tab: what the index is, in words; its sizes; and a sample of its passages as histograms and a map. */
import { byId, definitions, load, make, say } from './dom.js';
import { allIndexes, asked, readyFacts } from './facts.js';
import { histogram } from './histogram.js';
import { aboutIndex } from './index-words.js';
import { byLabel, parseMetrics } from './metrics-text.js';
import { passageMap } from './passage-map.js';
import { getJson, getText, hideError, pathOf, showError } from './server.js';
import { shardTable } from './shard-table.js';
import { bytes } from './units.js';

const SHARDS_HELP =
  'A search reads the prefilter of a shard, or its codes if it has none; of vectors, inverted indexes and passages only small parts.';

/** Bars of the histogram of lengths. */
const BARS = 24;

let shownGeneration;

/** Asks the server again at each opening, because the index may have been reloaded. */
export async function open(panel, _parameters, signal) {
  await Promise.all([load('index.css'), asked]);
  const listed = await allIndexes({ fresh: true });
  if (signal.aborted) return;
  const name = readyFacts()?.index;
  if (listed === null || name === undefined)
    throw new Error('The server does not describe its indexes. Is it starting, or does it require an API key?');
  const group = listed.groups.find((group) => group.name === name);
  if (group !== undefined) return showGroup(panel, group, listed.indexes);
  const details = listed.indexes.find((index) => index.name === name);
  if (details === undefined) throw new Error(`The server has no index of the name ${name}. Reload the page.`);
  if (shownGeneration === details.generation) return;
  const [metrics, sample, manifest] = await Promise.all([
    getText('/metrics').then(parseMetrics),
    getJson('/v1/sample'),
    manifestOrNull(),
  ]);
  if (signal.aborted) return;
  shownGeneration = details.generation;
  const lengths = sample.passages.map(({ words }) => words);
  panel.replaceChildren(
    make('h1', {}, details.name),
    make('div', { class: 'card about' }, ...aboutIndex(details, manifest)),
    sizeTiles(details, metrics),
    manifest === null ? '' : section('Shards', SHARDS_HELP, [shardTable(manifest.shards)]),
    section('Lengths', `Words of ${sample.passages.length} passages at even distances in the index`, [
      histogram(...bucketsOf(lengths), { unit: 'words', label: 'Lengths of passages in words' }),
    ]),
    details.model === null ? '' : mapSection(),
  );
}

/** A replay bundle and an index in a store have no manifest here. */
async function manifestOrNull() {
  try {
    return await getJson('/v1/manifest');
  } catch (error) {
    if (error.status === 501) return null;
    throw error;
  }
}

/** A group has no rows or vectors of its own, so its indexes are named, with their pages. */
function showGroup(panel, { name, indexes: members }, indexes) {
  const described = indexes.filter((index) => members.includes(index.name));
  const items = described.map(({ name: member, rows, deletedRows, modes }) => {
    const link = make('a', { href: `${pathOf(member)}/?tab=index` }, member);
    const passages = (rows - deletedRows).toLocaleString('en');
    return make('li', {}, link, `: ${passages} passages, ranked by ${modes.join(', ')}`);
  });
  panel.replaceChildren(
    make('h1', {}, name),
    make(
      'div',
      { class: 'card about' },
      make('p', {}, 'This is a group: a search asks its indexes and merges their hits. Choose one to see what it is.'),
      make('ul', {}, ...items),
    ),
  );
}

function section(title, help, children) {
  return make(
    'section',
    { class: 'card sample', 'aria-label': title },
    make('h2', {}, title),
    make('p', { class: 'help' }, help),
    ...children,
  );
}

function sizeTiles({ name, rows, dimension }, metrics) {
  const own = (metric) => byLabel(metrics, metric, 'index')[name] ?? 0;
  const facts = [
    ['Rows', rows.toLocaleString('en')],
    ['Values per vector', dimension === 0 ? 'none' : String(dimension)],
    ['Read by every search', bytes(own('trawl_index_resident_bytes'))],
    ['Mapped, read in small parts', bytes(own('trawl_index_mapped_bytes'))],
    ['Largest number of hits', readyFacts()?.max_topk.toLocaleString('en') ?? '–'],
  ];
  return make('dl', { class: 'tiles', 'aria-label': 'Sizes' }, ...definitions(facts, { class: 'card' }));
}

/** The map costs the encoder some work, so it is drawn when the reader asks. */
function mapSection() {
  const shown = make('div', {});
  const button = make('button', { type: 'button', class: 'quiet' }, 'Draw the map');
  const help =
    'The server embeds the sampled passages again and projects the vectors on their first two principal components. It keeps the result until the index is reloaded.';
  button.addEventListener('click', async () => {
    button.disabled = true;
    say('Embedding the sample');
    hideError();
    try {
      const { passages, map } = await getJson('/v1/sample?map=true');
      const [first, second] = map.explained.map((share) => `${(100 * share).toFixed(0)} %`);
      const about = `The components have ${first} and ${second} of the variance; the rest is not on the map, so near points need not be similar. Arrow keys move between points.`;
      const { low, high, counts } = map.similarities;
      shown.replaceChildren(
        make('p', { class: 'help' }, about),
        passageMap(passages, map.points),
        make('h3', {}, 'Scores of unrelated passages'),
        make('p', { class: 'help' }, 'Dot products of all pairs of the sample, to compare the scores of hits with.'),
        histogram(counts, [low, high], { unit: '', label: 'Dot products of pairs of passages' }),
      );
      button.remove();
      say('The map is drawn.');
    } catch (error) {
      button.disabled = false;
      if (!byId('panel-index').hidden) showError(error);
    }
  });
  return section('Map', help, [button, shown]);
}

/** Counts of whole numbers in at most BARS buckets of the same whole width, and their range. */
function bucketsOf(values) {
  if (values.length === 0) return [[0], [0, 0]];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const width = Math.ceil((high - low + 1) / BARS);
  const counts = new Array(Math.ceil((high - low + 1) / width)).fill(0);
  for (const value of values) counts[Math.floor((value - low) / width)]++;
  return [counts, [low, low + width * counts.length]];
}

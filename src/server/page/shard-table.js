/** The shards of an index: their rows, and the sizes of their parts. */
import { make } from './dom.js';
import { bytes } from './units.js';

/** Shards that are shown at once; an index of 21 million passages may have hundreds. */
const SHOWN = 20;
const PARTS = [
  ['vectors', 'Vectors'],
  ['codes', 'Codes'],
  ['prefilter', 'Prefilter'],
  ['words', 'Inverted indexes'],
  ['columns', 'Columns'],
  ['passages', 'Passages'],
];

export function shardTable(shards) {
  const parts = PARTS.filter(([part]) => shards.some((shard) => shard.bytes[part] > 0));
  const hasDeleted = shards.some(({ deletedRows }) => deletedRows > 0);
  const heads = ['Shard', 'Rows', ...(hasDeleted ? ['Deleted'] : []), ...parts.map(([, label]) => label)];
  const body = make('tbody', {}, ...shards.slice(0, SHOWN).map((shard, i) => shardRow(shard, i, parts, hasDeleted)));
  const head = make('tr', {}, ...heads.map((text) => make('th', { scope: 'col' }, text)));
  // The sums count all shards, not only those that are shown.
  const foot = shards.length < 2 ? null : make('tfoot', {}, sumRow(shards, parts, hasDeleted));
  const table = make('table', { class: 'shards' }, make('thead', {}, head), body, foot);
  const region = { class: 'scroller', tabindex: '0', role: 'region', 'aria-label': 'Table of shards' };
  const scroller = make('div', region, table);
  if (shards.length <= SHOWN) return scroller;
  const more = make('button', { type: 'button', class: 'link' }, `All ${shards.length.toLocaleString('en')} shards`);
  more.addEventListener('click', () => {
    body.append(...shards.slice(SHOWN).map((shard, i) => shardRow(shard, SHOWN + i, parts, hasDeleted)));
    more.remove();
    scroller.focus();
  });
  return make('div', {}, scroller, more);
}

function shardRow({ firstRow, rows, deletedRows, dtype, adopted, prefilter, bytes: sizes }, i, parts, hasDeleted) {
  const range =
    rows === 0 ? 'none' : `${firstRow.toLocaleString('en')} to ${(firstRow + rows - 1).toLocaleString('en')}`;
  const cells = parts.map(([part]) => {
    const size = sizes[part] === 0 ? 'none' : bytes(sizes[part]);
    if (part === 'vectors' && dtype !== null) return make('td', {}, `${size} ${dtype}${adopted ? ', adopted' : ''}`);
    return make('td', { title: part === 'prefilter' ? prefilter : null }, size);
  });
  const deleted = hasDeleted ? [make('td', {}, deletedRows.toLocaleString('en'))] : [];
  return make('tr', {}, make('th', { scope: 'row' }, String(i + 1)), make('td', {}, range), ...deleted, ...cells);
}

function sumRow(shards, parts, hasDeleted) {
  const sum = (value) => shards.reduce((total, shard) => total + value(shard), 0);
  const cells = [
    `${sum(({ rows }) => rows).toLocaleString('en')} rows`,
    ...(hasDeleted ? [sum(({ deletedRows }) => deletedRows).toLocaleString('en')] : []),
    ...parts.map(([part]) => bytes(sum((shard) => shard.bytes[part]))),
  ];
  const head = make('th', { scope: 'row' }, `All ${shards.length.toLocaleString('en')}`);
  return make('tr', {}, head, ...cells.map((cell) => make('td', {}, cell)));
}

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { generatedPages, withFigures, withTables } from '../../../bench/figures/marked-pages.ts';
import type { OnceResult } from '../../../bench/figures/once-table.ts';
import { numberAt, valueAt } from '../../../bench/figures/result-path.ts';
import { tableText } from '../../../bench/figures/table-text.ts';
import { TABLES } from '../../../bench/figures/tables.ts';
import { REPRODUCTIONS } from '../../../bench/reproduce/reproductions.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { readPages } from '../../helpers/markdown.ts';

const pages = generatedPages();
const results = (folder: string): string[] =>
  readdirSync(join(packageRoot, folder))
    .filter((name) => name.endsWith('.json') && name !== 'figures.json')
    .map((name) => `${folder}/${name}`);
const measured = results('bench/results');
const once = results('bench/results/once');
const textOf = (file: string): string => readFileSync(join(packageRoot, file), 'utf8');

test('every table, and every listed figure of a sentence, is that of its JSON file (npm run tables writes them)', () => {
  for (const { path, text, generated } of pages) assert.equal(text, generated, path);
});

test('every result and every kind of table is in a document', () => {
  const markers = pages.flatMap(({ text }) => [...text.matchAll(/<!-- table (\S+) of ([^\s#]+)/g)]);
  const used = new Set(markers.flatMap(([, name, file]) => [name, file]));
  for (const one of [...Object.keys(TABLES), ...measured, ...once]) assert.ok(used.has(one), `no document has ${one}`);
});

test('every result can be measured again, and docs/reproduce.md says how, or why not', () => {
  const page = textOf('docs/reproduce.md');
  const names = Object.keys(REPRODUCTIONS);
  assert.deepEqual(
    measured.map((file) => file.slice('bench/results/'.length, -'.json'.length)).sort(),
    [...names].sort(),
  );
  for (const name of names) assert.ok(page.includes(`npm run reproduce -- ${name}`), name);
  for (const file of once) {
    const { about, date, machine, command, notAgain, columns, rows } = JSON.parse(textOf(file)) as OnceResult;
    for (const value of [about, machine, command, notAgain]) assert.ok(value.length > 5, file);
    assert.match(date, /^\d{4}-\d\d-\d\d/, file);
    for (const row of rows) assert.equal(row.length, columns.length, file);
    assert.ok(page.includes(`\`${file}\``), `docs/reproduce.md does not list ${file}`);
  }
});

test('published results name no folder of the machine that measured them', () => {
  for (const file of [...measured, ...once])
    assert.doesNotMatch(textOf(file), /"[^"]*\/(?:root|home|work|Users|tmp)\//, file);
});

test('all lines of a table have as many cells, else GitHub shows no table', () => {
  const cells = (line: string): number => line.split(/(?<!\\)\|/).length;
  for (const { path, text } of readPages()) {
    for (const [table] of text.replaceAll(/^```[^\n]*\n[\s\S]*?^```/gm, '').matchAll(/(?:^\|.*\n)+/gm)) {
      const [first, ...lines] = table.trimEnd().split('\n');
      for (const line of lines) assert.equal(cells(line), cells(first!), `${path}: ${line}`);
    }
  }
});

const RESULT = {
  k: 10,
  rows: [
    { engine: 'trawl', queries: 1, ms: 2, name: 'a' },
    { engine: 'faiss', queries: 1, ms: 8.4, name: 'b' },
    { engine: 'trawl', queries: 64, ms: null, name: 'c' },
  ],
};
const scope = { line: RESULT.rows[1], result: RESULT };

test('a path chooses elements of lists by their values, from the line or from the whole result', () => {
  for (const [path, value] of [
    ['ms', 8.4],
    ['/k', 10],
    ['/rows[engine=trawl][queries=1].ms', 2],
    ['/rows[engine!=faiss][ms].name', 'a'],
    ['/rows[name=a|b][engine~fai].name', 'b'],
    ['/rows[engine=trawl][queries=$queries].ms', 2],
    ['/rows[engine=numpy].ms', undefined],
    ['/rows.ms', undefined],
  ] as const) {
    assert.equal(valueAt(path, scope), value, path);
  }
  assert.equal(numberAt('ms / /rows[engine=trawl][queries=$queries].ms', scope), 4.2);
  assert.equal(numberAt('/k * 100', scope), 1000);
  assert.throws(() => valueAt('rows..ms', scope), /expected keys joined by points/);
});

test('a table has a line for each element, empty cells for what is missing, and texts to the left', () => {
  const table = {
    each: 'rows[engine=trawl]',
    columns: { name: '{name}', time: '{ms:1} ms', more: '{ms:ms:–}, {queries}' },
  };
  const lines = ['| name | time | more |', '| --- | ---: | --- |', '| a | 2.0 ms | 2.0 ms, 1 |', '| c |  | –, 64 |'];
  assert.equal(tableText(table, RESULT), lines.join('\n'));
  assert.throws(() => tableText({ ...table, each: 'records' }, RESULT), /records has no elements/);
  assert.throws(
    () => tableText({ ...table, columns: { a: '{ms:hours}' } }, RESULT),
    /no format hours; expected bytes, /,
  );
});

test('tables are written between their markers, and an unknown name is refused', () => {
  const page = '<!-- table soak of f.json#part -->\n\nold\n\n<!-- end of table -->\n';
  const read = (): unknown => ({ part: { rows: [['x', 'passed', '1']] } });
  assert.equal(withTables(page, read).split('\n')[4], '| x | passed | 1 |');
  assert.throws(
    () => withTables(page.replace('soak', 'soup'), read),
    /There is no table soup; expected one of machine, /,
  );
});

test('numbers of a sentence are written with its digits, and a fragment that the page has twice or not at all is refused', () => {
  const read = (): unknown => ({ ms: 12_845.6, bytes: 10_746_000_000, rows: 21_000_000 });
  const figures = { 'takes {} s for {} GB': ['f.json#ms / 1000', 'f.json#bytes / 1e9'], 'of {} rows': ['f.json#rows'] };
  const page = 'It takes 12 s for\n10.70 GB of 7,000,000 rows.';
  assert.equal(withFigures(page, figures, read), 'It takes 13 s for\n10.75 GB of 21,000,000 rows.');
  assert.throws(
    () => withFigures(`${page} ${page}`, figures, read),
    /«takes \{\} s for \{\} GB» is 2 times in the page/,
  );
  assert.throws(() => withFigures('It takes a while.', figures, read), /is 0 times in the page, expected once/);
  assert.throws(() => withFigures(page, { 'takes {} s': ['f.json#none'] }, read), /There is no number at f\.json#none/);
  assert.throws(() => withFigures(page, { 'takes {} s': [] }, read), /has 1 numbers and 0 sources/);
});

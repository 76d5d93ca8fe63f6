import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type AllResult, resultOf as resultOfStage } from '../../../bench/all/all-result.ts';
import { REPRODUCTIONS } from '../../../bench/reproduce/reproductions.ts';
import { figureTable, TABLE_NAMES } from '../../../bench/tables/figure-tables.ts';
import { markedTables, withTables } from '../../../bench/tables/marked-tables.ts';
import type { OnceResult } from '../../../bench/tables/once-table.ts';
import type { PrecisionResult } from '../../../bench/tables/precision-result.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { readPages } from '../../helpers/markdown.ts';
import { NOT_MEASURED } from './not-measured.ts';
import { hasFigures, plainTables, unevenTables } from './plain-tables.ts';

const pages = readPages().filter(({ path }) => /^(?:README\.md|bench\/|docs\/|clients\/)/.test(path));
/** A reproduction may be there before its first result. */
const recorded = REPRODUCTIONS.filter(({ file }) => existsSync(join(packageRoot, file)));
const resultOf = (file: string): unknown => JSON.parse(readFileSync(join(packageRoot, file), 'utf8'));
const jsonFiles = (folder: string): string[] =>
  readdirSync(join(packageRoot, folder))
    .filter((name) => name.endsWith('.json'))
    .map((name) => `${folder}/${name}`);
const resultFiles = (): string[] => jsonFiles('bench/results');
const onceFiles = (): string[] => jsonFiles('bench/results/once');
const content = (name: string, file: string): string => figureTable(name, resultOf(file));

test('every marked table has the figures of its JSON file (npm run tables writes them)', () => {
  const seen = new Set<string>();
  for (const { path } of pages) {
    const file = join(packageRoot, path);
    for (const table of markedTables(readFileSync(file, 'utf8'))) {
      assert.ok(existsSync(join(packageRoot, table.file)), `${path}: ${table.file} does not exist`);
      assert.equal(table.content, content(table.name, table.file), `${path}: table ${table.name}`);
      seen.add(table.name).add(table.file);
    }
  }
  for (const name of TABLE_NAMES) assert.ok(seen.has(name), `no page has the table ${name}`);
  for (const file of [...resultFiles(), ...onceFiles()])
    assert.ok(seen.has(file), `no table has the figures of ${file}`);
});

test('every other table with numbers is listed as one that nobody measured, and the list has no others', () => {
  const used = new Set<readonly string[]>();
  for (const { path, text } of pages) {
    for (const table of plainTables(text).filter(hasFigures)) {
      const entry = NOT_MEASURED.find(([page, header]) => page === path && table.header.startsWith(header));
      assert.ok(
        entry,
        `${path}: the table «${table.header}» has figures. Commit their JSON and mark the table (CONTRIBUTING.md, "Tables of figures"); if they were not measured, list it in test/bench/tables/not-measured.ts.`,
      );
      used.add(entry);
    }
  }
  for (const entry of NOT_MEASURED) {
    assert.ok(used.has(entry), `${entry.join(': ')}: no such table. Remove the entry.`);
  }
});

test('all lines of a table have as many cells', () => {
  for (const { path, text } of pages) assert.deepEqual(unevenTables(text), [], path);
  assert.deepEqual(unevenTables('| a | b |\n| --- |\n| c | d |\n'), ['| a | b |']);
  assert.deepEqual(unevenTables('```\n| a | b |\n| c |\n```\n\n| `a\\|b` | c |\n| --- | --- |\n'), []);
});

test('every result can be reproduced, and docs/reproduce.md says how', () => {
  const page = readFileSync(join(packageRoot, 'docs', 'reproduce.md'), 'utf8');
  const files = REPRODUCTIONS.map(({ file }) => file);
  for (const file of resultFiles()) assert.ok(files.includes(file), `nothing measures ${file} again`);
  for (const { name } of REPRODUCTIONS) assert.ok(page.includes(`npm run reproduce -- ${name}`), name);
  for (const { name, file, expectations } of recorded) {
    const expected = expectations(resultOf(file));
    assert.ok(expected.length > 2, name);
    assert.equal(new Set(expected.map((one) => one.name)).size, expected.length, 'names differ');
    for (const { value } of expected) assert.ok(Number.isFinite(value));
  }
});

test('a measurement that no command repeats says what, when, where and how it was, and why it is not repeated', () => {
  const page = readFileSync(join(packageRoot, 'docs', 'reproduce.md'), 'utf8');
  assert.ok(onceFiles().length > 0);
  for (const file of onceFiles()) {
    const { about, date, machine, command, notAgain, columns, rows } = resultOf(file) as OnceResult;
    for (const value of [about, machine, command, notAgain]) assert.ok(value.length > 5, file);
    assert.match(date, /^\d{4}-\d\d-\d\d/, file);
    for (const row of rows) assert.equal(row.length, columns.length, file);
    assert.ok(page.includes(`\`${file}\``), `docs/reproduce.md does not list ${file}`);
  }
});

test('a report of which only some stages were measured has tables without lines, not wrong ones', () => {
  const whole = resultOf('bench/results/bench-small.json') as { stages: object };
  for (const name of ALL_TABLES) {
    assert.ok(figureTable(name, whole).split('\n').length > 2, name);
    const lines = figureTable(name, { ...whole, stages: {} }).split('\n');
    assert.equal(lines.length, 2, name);
    assert.equal(new Set(lines.map((line) => line.split('|').length)).size, 1, name);
  }
});

test('an engine that was not measured with some number of queries has empty cells there', () => {
  const whole = structuredClone(resultOf('bench/results/bench-small.json')) as AllResult;
  const flat = resultOfStage(whole, 'flat')!;
  const stages = { flat: { ...whole.stages.flat!, result: { ...flat, records: flat.records.filter(isShort) } } };
  const lines = figureTable('exact-search', { ...whole, stages }).split('\n');
  assert.match(lines.at(-2)!, /^\| 64 \| [\d.]+ ms \|.*× \|$/);
  assert.match(lines.at(-1)!, /^\| 256 \| [\d.]+ ms \| [\d.,]+ ms \| 20 × \| {2}\| {2}\| {2}\| {2}\|$/);
});

const ALL_TABLES = [
  ...['machine', 'exact-search', 'exact-search-memory', 'encoder', 'index-building', 'servers', 'recall-by-latency'],
  ...['end-to-end', 'search-lead', 'server-lead'],
];
const isShort = ({ engine, queries }: { readonly engine: string; readonly queries: number }): boolean =>
  queries <= 64 || engine === 'trawl' || engine === 'faiss';

test('a precision that changes no question has a difference without an interval', () => {
  const result = resultOf('bench/results/precision.json') as PrecisionResult;
  const row = result.rows.find(({ difference }) => difference !== null)!;
  const difference = { ...row.difference!, mean: 0, low: null, high: null, better: 0, worse: 0 };
  assert.match(figureTable('precision', { ...result, rows: [{ ...row, difference }] }), / \| \+0\.00 \| 0, 0 \| /);
});

test('published results name no folder of the machine that measured them', () => {
  for (const file of [...resultFiles(), ...onceFiles()]) {
    assert.doesNotMatch(readFileSync(join(packageRoot, file), 'utf8'), /"[^"]*\/(?:root|home|work|Users|tmp)\//, file);
  }
});

test('markers are found and replaced, and tables within them and in code blocks are not plain', () => {
  const page = [
    'A\n\n<!-- table x of f.json -->\n\n| a | b |\n| --- | --- |\n| c | 1 ms |\n| d | 2 ms |\n\n<!-- end of table -->\n',
    '```\n| a | b |\n| --- | --- |\n| c | 1 |\n```\n',
    '| name | time |\n| --- | --- |\n| `a\\|b` | 1.5 ms |\n| d | 10.7 × |\n',
  ].join('\n');
  assert.deepEqual(
    markedTables(page).map(({ name, file }) => [name, file]),
    [['x', 'f.json']],
  );
  assert.match(
    withTables(page, (name, file) => `${name} ${file}`),
    /-->\n\nx f\.json\n\n<!-- end/,
  );
  const [table, ...more] = plainTables(page);
  assert.equal(more.length, 0);
  assert.deepEqual(table, { header: 'name | time', cells: ['`a\\|b`', '1.5 ms', 'd', '10.7 ×'] });
  assert.ok(hasFigures(table!));
  assert.ok(!hasFigures({ header: '', cells: ['a', 'text', 'b', '2 words of a sentence', 'c', 'more'] }));
  assert.throws(() => figureTable('unknown', {}), /There is no table unknown; expected one of machine, exact-search/);
});

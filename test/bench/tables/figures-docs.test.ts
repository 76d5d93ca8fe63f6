import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { figureText, markedFigures, valueAt, withFigures } from '../../../bench/tables/marked-figures.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { readPages } from '../../helpers/markdown.ts';
import { proseOf, sentenceFigures, unmarkedFigures } from './sentence-figures.ts';

/** Figures without a marker, by page, separated by semicolons. */
const LISTS = join(packageRoot, 'test', 'bench', 'tables', 'listed-figures.json');
interface ListedFigures {
  /** Limits, goals, sizes of data sets, sizes computed by formulas, examples. */
  readonly notMeasured?: string;
  /** Nobody has looked yet whether they were measured. */
  readonly unsorted?: string;
}

const pages = readPages().filter(({ path }) => /^(?:README\.md|bench\/|docs\/|clients\/)/.test(path));

test('every marked figure of a sentence is that of its JSON file (npm run tables writes them)', () => {
  let count = 0;
  for (const { path, text } of pages) {
    assert.equal(markedFigures(text).length, text.split('<!-- figure ').length - 1, `${path}: a marker cannot be read`);
    for (const marked of markedFigures(text)) {
      assert.ok(existsSync(join(packageRoot, marked.file)), `${path}: ${marked.file} does not exist`);
      const value = valueAt(JSON.parse(readFileSync(join(packageRoot, marked.file), 'utf8')), marked.path);
      assert.equal(marked.shown, figureText(marked, value), `${path}: ${marked.file}#${marked.path}`);
      assert.ok(
        marked.paragraph.includes(marked.shown),
        `${path}: the paragraph of the marker has no ${marked.shown}: ${marked.paragraph}`,
      );
      count++;
    }
  }
  assert.ok(count > 0);
});

test('every other figure of a sentence is listed, and the lists have no others', () => {
  if (process.env['TRAWL_UPDATE_DOCS'] === '1') writeFileSync(LISTS, `${JSON.stringify(updated(listed()), null, 2)}\n`);
  assert.deepEqual(
    listed(),
    updated(listed()),
    'Commit the JSON of a new figure and mark the figure (CONTRIBUTING.md, "Figures in sentences"). TRAWL_UPDATE_DOCS=1 npm test -- figures-docs removes figures that are gone from the lists, and adds new ones as unsorted: move those that nobody measured to notMeasured.',
  );
});

test('every listed figure is sorted: one that was measured has a JSON file', () => {
  for (const [page, { unsorted }] of Object.entries(listed())) assert.equal(unsorted, undefined, page);
});

const figuresOf = (list: string | undefined): string[] => (list === undefined ? [] : list.split('; '));
const listed = (): Record<string, ListedFigures> => JSON.parse(readFileSync(LISTS, 'utf8'));

/** The lists without the figures that the pages no longer have, and with the new ones as unsorted. */
function updated(lists: Readonly<Record<string, ListedFigures>>): Record<string, ListedFigures> {
  const now: Record<string, ListedFigures> = {};
  for (const { path, text } of pages) {
    const found = unmarkedFigures(text);
    if (found.length === 0) continue;
    const entry: { -readonly [Kind in keyof ListedFigures]: string } = {};
    for (const kind of ['notMeasured', 'unsorted'] as const) {
      const kept = figuresOf(lists[path]?.[kind]).filter((figure) => {
        const at = found.indexOf(figure);
        if (at >= 0) found.splice(at, 1);
        return at >= 0;
      });
      if (kind === 'unsorted') kept.push(...found);
      if (kept.length > 0) entry[kind] = kept.join('; ');
    }
    now[path] = entry;
  }
  return now;
}

test('figures are found with their units, and versions, days, code and tables have none', () => {
  const prose = proseOf(
    [
      '# Title\n\nA query takes 7 to 17 ms, 1,234 passages 1.6 GB ([more](a.md#5-ms)), **0.872** of them 6.5 × as fast, 95 % in 3 s.',
      'Node.js 22.15 or Lucene 10.3.2 on 2026-11-23 with `--k 10 ms`, 2 cores, `faiss-cpu 1.15.1` and 768 dimensions.',
      '```\n12 ms\n```\n| 13 ms | 14 ms |\n<!-- 15 ms -->\n<img width="640 ms">',
      'Half, 11.8 million queries and 1,939 s (10.4 minutes); 38.6, 51.9 and 38.1 texts/s.',
    ].join('\n\n'),
  );
  assert.deepEqual(
    sentenceFigures(prose).map(({ text }) => text),
    [
      ...['7 to 17 ms', '1,234', '1.6 GB', '0.872', '6.5 ×', '95 %', '3 s'],
      ...['11.8 million', '1,939 s', '10.4 minutes', '38.6, 51.9 and 38.1 texts/s'],
    ],
  );
});

const RESULT = {
  rows: [
    { set: 'a', system: 'BM25', metrics: { 'recall@10': 0.87249 } },
    { set: 'b', system: 'BM25', metrics: { 'recall@10': 0.5 } },
  ],
  steps: { import: { ms: 12_345.6, bytes: 10_746_000_000 } },
};

test('a marker names the number in its file, by keys and by values of list elements', () => {
  assert.equal(valueAt(RESULT, 'steps.import.ms'), 12_345.6);
  assert.equal(valueAt(RESULT, 'rows[system=BM25][set=b].metrics.recall@10'), 0.5);
  for (const [path, message] of [
    ['steps.export.ms', /there is undefined, expected a number/],
    ['steps.import', /there is .*"ms".*, expected a number/],
    ['rows[set=c].metrics.recall@10', /no element with set c/],
    ['rows[system=BM25].metrics.recall@10', /there is undefined/],
    ['steps..import', /expected keys joined by points/],
  ] as const) {
    assert.throws(() => valueAt(RESULT, path), message, path);
  }
});

test('a marked figure has the digits and the unit of the sentence, and a range needs a marker for each number', () => {
  const page =
    'It takes 12 s for 10.75 GB, and 3 to 4 s\nelsewhere. <!-- figure 12 s of f.json#steps.import.ms / 1000 --> <!-- figure 3 of f.json#x -->\n\nNext 12 s.';
  const [seconds] = markedFigures(page);
  assert.deepEqual([seconds!.file, seconds!.path], ['f.json', 'steps.import.ms']);
  assert.equal(seconds!.paragraph.trim(), 'It takes 12 s for 10.75 GB, and 3 to 4 s elsewhere.');
  assert.equal(figureText(seconds!, 12_345.6), '12 s');
  assert.equal(figureText(seconds!, 12_845.6), '13 s');
  assert.equal(figureText({ shown: '10.75 GB', divisor: 1e9 }, 10_746_000_000), '10.75 GB');
  assert.equal(figureText({ shown: '0.70 s', divisor: 1000 }, 695), `${(0.695).toFixed(2)} s`);
  assert.equal(figureText({ shown: '1,939 s', divisor: 1 }, 1_938.7), '1,939 s');
  assert.equal(figureText({ shown: '7,000,000', divisor: 1 }, 21_000_000), '21,000,000');
  assert.deepEqual(unmarkedFigures(page), ['10.75 GB', '3 to 4 s', '12 s']);
  assert.deepEqual(unmarkedFigures(page.replace('#x -->', '#x --> <!-- figure 4 s of f.json#y -->')), [
    '10.75 GB',
    '12 s',
  ]);
});

test('figures are written into sentence and marker, and refused if the paragraph has the old one twice or not at all', () => {
  const page = '# A\n\nIt takes 12 s,\nnot 13 s. <!-- figure 12 s of f.json#ms / 1000 -->\n\nNext 12 s.\n';
  assert.equal(
    withFigures(page, () => 14_400),
    '# A\n\nIt takes 14 s,\nnot 13 s. <!-- figure 14 s of f.json#ms / 1000 -->\n\nNext 12 s.\n',
  );
  assert.equal(
    withFigures(page, () => 12_400),
    page,
  );
  for (const other of [page.replace('13 s', '12 s'), page.replace('takes 12 s', 'takes a while')]) {
    assert.throws(
      () => withFigures(other, () => 14_400),
      /12 s of f\.json#ms is now 14 s; its paragraph has it not exactly once/,
    );
  }
});

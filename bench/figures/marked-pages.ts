import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import { numberAt, valueAt } from './result-path.ts';
import { tableText } from './table-text.ts';
import { TABLES } from './tables.ts';

/**
 * Page → fragment of a sentence → its numbers in JSON files of bench/results. In the fragment `{}` stands for a number, and a space for any
 * white space: `"finds {} of the passages": ["evaluation.json#rows[system=BM25].metrics.recall@10"]`.
 */
export type FigureList = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

/** The figures of sentences that are compared with results. */
const FIGURE_LIST = 'bench/results/figures.json';

const TABLE = /<!-- table ([a-z0-9-]+) of ([^\s#]+)(?:#(\S+))? -->\n[\s\S]*?<!-- end of table -->/g;
const NUMBER = String.raw`(\d(?:[\d,]*\d)?(?:\.\d+)?)`;
const SPECIAL = /[.*+?^${}()|[\]\\]/g;

/** Every page that has a table or a figure, as it should be. */
export function generatedPages(): { readonly path: string; readonly text: string; readonly generated: string }[] {
  const figures = readJson(FIGURE_LIST) as FigureList;
  const paths = ['README.md', ...['bench', 'docs'].flatMap(pagesOf)];
  for (const page of Object.keys(figures)) {
    if (!paths.includes(page)) throw new RangeError(`${FIGURE_LIST} has ${page}, which is not a page.`);
  }
  return paths.map((path) => {
    const text = readFileSync(join(packageRoot, path), 'utf8');
    return { path, text, generated: withFigures(withTables(text, readJson), figures[path] ?? {}, readJson) };
  });
}

/**
 * The page with the lines of every table between `<!-- table NAME of FILE -->` and `<!-- end of table -->`; `FILE#path` names a part of the file.
 *
 * @internal Exported for tests.
 */
export function withTables(page: string, read: (file: string) => unknown): string {
  return page.replaceAll(TABLE, (_, name: string, file: string, path?: string) => {
    const table = TABLES[name];
    if (table === undefined) {
      throw new RangeError(`There is no table ${name}; expected one of ${Object.keys(TABLES).join(', ')}.`);
    }
    const result = read(file);
    const part = path === undefined ? result : valueAt(path, { line: result, result });
    const marker = `<!-- table ${name} of ${file}${path === undefined ? '' : `#${path}`} -->`;
    return `${marker}\n\n${tableText(table, part)}\n\n<!-- end of table -->`;
  });
}

/**
 * The page with the numbers of every fragment as their files have them, with as many decimals as in the page.
 *
 * @param read parses a JSON file, whose path begins at the repository.
 * @throws RangeError if the page does not have a fragment exactly once, or a file has no such number.
 * @internal Exported for tests.
 */
export function withFigures(page: string, figures: FigureList[string], read: (file: string) => unknown): string {
  return Object.entries(figures).reduce((text, [fragment, sources]) => {
    const words = fragment.split('{}').map((part) => part.replaceAll(SPECIAL, '\\$&').replaceAll(' ', String.raw`\s+`));
    if (words.length !== sources.length + 1) {
      throw new RangeError(`«${fragment}» has ${words.length - 1} numbers and ${sources.length} sources.`);
    }
    const pattern = new RegExp(words.map((part) => `(${part})`).join(NUMBER), 'g');
    const times = [...text.matchAll(pattern)].length;
    if (times !== 1) throw new RangeError(`«${fragment}» is ${times} times in the page, expected once.`);
    return text.replace(pattern, (...groups: string[]) =>
      // The first group is the whole match; words and numbers take turns behind it.
      groups
        .slice(1, 2 * words.length)
        .map((part, i) => (i % 2 === 0 ? part : written(numberOf(sources[(i - 1) / 2]!), part)))
        .join(''),
    );
  }, page);

  function numberOf(source: string): number {
    const [file, expression] = source.split('#') as [string, string];
    const result = read(`bench/results/${file}`);
    const number = numberAt(expression, { line: result, result });
    if (number === undefined) throw new RangeError(`There is no number at ${source}.`);
    return number;
  }
}

function written(value: number, shown: string): string {
  // As the tables round.
  const [whole, decimals] = value.toFixed(shown.split('.')[1]?.length ?? 0).split('.');
  const grouped = shown.includes(',') || whole!.length > 4;
  return [grouped ? Number(whole).toLocaleString('en-US') : whole, ...(decimals === undefined ? [] : [decimals])].join(
    '.',
  );
}

function pagesOf(folder: string): string[] {
  const names = readdirSync(join(packageRoot, folder)).filter((name) => name.endsWith('.md'));
  return names.map((name) => `${folder}/${name}`);
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(join(packageRoot, file), 'utf8'));
}

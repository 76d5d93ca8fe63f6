// Writes the tables and the figures of sentences in the documents from the JSON files that their markers name (CONTRIBUTING.md,
// "Tables of figures").
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, setup } from './setup.mjs';

await setup();
const { markedTables, withTables } = await import('../dist/bench/tables/marked-tables.js');
const { markedFigures, valueAt, withFigures } = await import('../dist/bench/tables/marked-figures.js');
const { figureTable } = await import('../dist/bench/tables/figure-tables.js');
const pages = ['bench', 'docs'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`),
);
for (const page of ['README.md', ...pages]) {
  const path = join(root, page);
  const text = readFileSync(path, 'utf8');
  const [tables, figures] = [markedTables(text).length, markedFigures(text).length];
  if (tables + figures === 0) continue;
  const resultOf = (file) => JSON.parse(readFileSync(join(root, file), 'utf8'));
  const withNewTables = withTables(text, (name, file) => figureTable(name, resultOf(file)));
  writeFileSync(
    path,
    withFigures(withNewTables, (file, key) => valueAt(resultOf(file), key)),
  );
  process.stdout.write(`${page}: ${tables} tables, ${figures} figures of sentences\n`);
}

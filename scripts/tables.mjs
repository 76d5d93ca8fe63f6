// Writes the tables of figures in the documents from the JSON files that their markers name (CONTRIBUTING.md, "Tables of figures").
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, setup } from './setup.mjs';

await setup();
const { markedTables, withTables } = await import('../dist/bench/tables/marked-tables.js');
const { figureTable } = await import('../dist/bench/tables/figure-tables.js');
const docs = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'));
for (const page of ['README.md', 'bench/README.md', ...docs.map((name) => `docs/${name}`)]) {
  const path = join(root, page);
  const text = readFileSync(path, 'utf8');
  if (markedTables(text).length === 0) continue;
  const tableOf = (name, file) => figureTable(name, JSON.parse(readFileSync(join(root, file), 'utf8')));
  writeFileSync(path, withTables(text, tableOf));
  process.stdout.write(`${page}: ${markedTables(text).length} tables\n`);
}

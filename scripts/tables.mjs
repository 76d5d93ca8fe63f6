// Writes the tables of the documents, and the figures of their sentences that bench/results/figures.json lists, from the JSON results.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, setup } from './setup.mjs';

await setup();
const { generatedPages } = await import('../dist/bench/figures/marked-pages.js');
for (const { path, text, generated } of generatedPages()) {
  if (generated === text) continue;
  writeFileSync(join(root, path), generated);
  process.stdout.write(`${path}\n`);
}

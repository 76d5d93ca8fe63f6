import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BenchProductsResult } from '../products/bench-products.ts';
import { runTrawl } from '../serve/serve-index.ts';
import type { ReproductionRun } from './reproduction-run.ts';

/** The width and the layers of all-MiniLM-L6-v2, and of a quarter of E5-base. */
const SHAPES = [
  { dimension: 384, layers: 6 },
  { dimension: 768, layers: 3 },
];

/** Runs `trawl bench products` for both shapes, and writes one result with the records of both. */
export async function benchShapes({ file, scratch, signal }: ReproductionRun): Promise<void> {
  const results: BenchProductsResult[] = [];
  for (const { dimension, layers } of SHAPES) {
    const part = join(scratch, `products-${dimension}.json`);
    const shape = ['--dimension', String(dimension), '--layers', String(layers)];
    await runTrawl(
      ['bench', 'products', ...shape, '--tokens', '128,12', '--threads', '2', '--runs', '5', '--out', part],
      signal,
    );
    results.push(JSON.parse(await readFile(part, 'utf8')));
  }
  const [{ environment, skipped }] = results as [BenchProductsResult];
  const result: BenchProductsResult = { environment, records: results.flatMap(({ records }) => records), skipped };
  await writeFile(file, `${JSON.stringify(result, null, 1)}\n`);
}

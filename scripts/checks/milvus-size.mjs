// The memory of a real Milvus and the time of its FLAT candidates by the number of rows (docs/cluster.md).
// `npm run check -- milvus-size DIMENSION ROWS… [--out FILE]`; `npm run check -- peers milvus` installs Milvus.
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { fail, setup } from '../setup.mjs';

const { values, positionals } = parseArgs({ options: { out: { type: 'string' } }, allowPositionals: true });
const [dimension, ...sizes] = positionals.map(Number);
if (!(dimension > 0) || sizes.length === 0 || !sizes.every((rows) => rows > 0)) {
  fail('Expected a dimension and numbers of rows: npm run check -- milvus-size 384 20000 100000.');
}
await setup();
const loadBefore = loadavg()[0];
const { measureSizes } = await import('../../dist/test/peers/milvus-size.js');
const { machineFacts } = await import('../../dist/bench/environment.js');
const measured = await measureSizes(dimension, sizes, (row) => process.stdout.write(`${JSON.stringify(row)}\n`));
if (values.out !== undefined) {
  const environment = machineFacts({ engines: [], loadBefore });
  writeFileSync(values.out, `${JSON.stringify({ environment, dimension, sizes: measured }, null, 2)}\n`);
}

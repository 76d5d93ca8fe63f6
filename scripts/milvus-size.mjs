// `node scripts/milvus-size.mjs DIMENSION ROWS…`: measures the memory of a real Milvus and the time of its FLAT candidates by the number of
// rows, and prints the table of docs/cluster.md. `npm run test:peers -- milvus` installs Milvus.
import { fail, setup } from './setup.mjs';

const [dimension, ...sizes] = process.argv.slice(2).map(Number);
if (!(dimension > 0) || sizes.length === 0 || !sizes.every((rows) => rows > 0)) {
  fail('Expected a dimension and numbers of rows: node scripts/milvus-size.mjs 384 20000 100000.');
}
await setup();
const { measureSizes } = await import('../dist/test/peers/milvus-size.js');
await measureSizes(dimension, sizes, (line) => process.stdout.write(`${line}\n`));

// Measures the figures of a table again and compares them with the recorded ones (docs/reproduce.md).
// `npm run reproduce` lists the names; `npm run reproduce -- NAME --write` replaces the recorded figures.
import { setup } from './setup.mjs';

const [name, ...rest] = process.argv.slice(2);
await setup();
const { reproduce, reproductionList } = await import('../dist/bench/reproduce/reproduce.js');
const write = rest.includes('--write');
const unknown = rest.filter((argument) => argument !== '--write');
if (name === undefined || unknown.length > 0) {
  process.stdout.write(`${unknown.length > 0 ? `Unknown: ${unknown.join(' ')}\n` : ''}${reproductionList()}\n`);
  process.exitCode = unknown.length > 0 ? 2 : 0;
} else {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());
  try {
    const { report, ok } = await reproduce(name, { write, signal: stop.signal });
    process.stdout.write(`${report}\n`);
    process.exitCode = ok ? 0 : 1;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    process.exitCode = 2;
  }
}

// The steps of scripts/checks/size.mjs that make files and read them: rows, corpus, index, scan.
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { heldOutQueries } from '../../../dist/bench/flat/queries.js';
import { writeRows } from '../../../dist/bench/size/row-files.js';
import { scanRows } from '../../../dist/bench/size/scan-rows.js';
import { secondsSince, startTrawl } from '../../measured-trawl.mjs';

export async function rows({ folder, basis, seed, rows, signal, note }) {
  const from = performance.now();
  await writeRows(folder, { basis, seed, rows }, { signal, note });
  return { seconds: secondsSince(from) };
}

export async function corpus({ corpus, rows, signal }) {
  const from = performance.now();
  const file = await open(corpus, 'w');
  try {
    for (let first = 0; first < rows; first += 100_000) {
      const count = Math.min(100_000, rows - first);
      await file.write(
        Array.from({ length: count }, (_, i) => `{"id":${first + i},"contents":"p${first + i}"}\n`).join(''),
      );
      signal.throwIfAborted();
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return { seconds: secondsSince(from) };
}

/** Imports the rows in place. */
export async function index({ files: { header, pieces }, corpus, index, endpoint, signal, note }) {
  const from = performance.now();
  const words = ['--corpus', corpus, '--model', endpoint.url, '--check-model', '0', '--shard-rows', '1000000'];
  const rows = [header, ...pieces.map(({ path }) => path)];
  const child = startTrawl(['import', ...rows, ...words, '--out', index, '--json'], { signal });
  createInterface(child.process.stderr).on('line', (line) => note(line.slice(0, 300)));
  let text = '';
  child.process.stdout.on('data', (data) => (text += data));
  const { code, peakBytes } = await child.ended;
  if (code !== 0) throw new Error(`trawl import ended with ${code}; the same command resumes it`);
  return { seconds: secondsSince(from), peakBytes, stageMs: JSON.parse(text).stageMs };
}

/** Finds the best rows of the first queries by reading all rows. */
export async function scan({ files: { pieces }, basis, seed, checked, k, signal, note }) {
  const from = performance.now();
  const { values } = heldOutQueries(basis, checked, seed);
  const best = await scanRows(pieces, { queries: values, dimension: basis.dimension, k, signal, note });
  return { seconds: secondsSince(from), best };
}

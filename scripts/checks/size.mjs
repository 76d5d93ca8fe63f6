// 21 million rows of 768 dimensions imported, served and compared with a scan (71 GB of free disk, 1 to 2 hours).
// The rows are float16 and have E5's distribution. The steps:
// - rows: generates the rows in files of a million.         - corpus: a short passage for each row.
// - index: imports the rows in place.                       - scan: finds the best rows of 8 queries by reading all rows.
// - plan: what `trawl serve --plan` expects.                - open: time until the server is ready, with cold and warm files.
// - memory: requests of 1, 16, 64 and 512 queries.          - prefilter: the same in a memory control group that holds little more
//                                                             than the prefilters (root, Linux).
// Each step keeps its result in the folder, so that a stopped run resumes; `--steps open,memory` runs only these. The last step
// writes --out and removes the folder, unless --keep. `--rows N` makes it smaller; `--folder F` chooses the disk.
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { setup } from '../setup.mjs';

const DIMENSION = 768;
const SEED = 1;
const K = 10;
const CHECKED_QUERIES = 8;

const { values: args } = parseArgs({
  options: {
    rows: { type: 'string', default: '21000000' },
    folder: { type: 'string', default: join(tmpdir(), 'trawl-size') },
    steps: { type: 'string' },
    out: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
});
await setup();
const making = await import('./size/make-files.mjs');
const serving = await import('./size/serve-index.mjs');
const { basisFor } = await import('../../dist/bench/vectors/vector-basis.js');
const { machineFacts, loadNow } = await import('../../dist/bench/environment.js');
const { rowFiles } = await import('../../dist/bench/size/row-files.js');
const estimates = await import('../../dist/bench/size/size-estimates.js');
const { openVectorEndpoint } = await import('../../dist/bench/size/vector-endpoint.js');
const STEPS = { ...making, ...serving };

const rows = Number(args.rows);
if (!Number.isSafeInteger(rows) || rows < 1) throw new Error(`--rows must be a positive integer, not ${args.rows}`);
const wanted = args.steps?.split(',') ?? estimates.SIZE_STEPS;
const unknown = wanted.filter((step) => !estimates.SIZE_STEPS.includes(step));
if (unknown.length > 0) throw new Error(`--steps: ${unknown} is none of ${estimates.SIZE_STEPS}`);
const folder = resolve(args.folder);
const index = join(folder, 'index');
const basis = basisFor({ dimension: DIMENSION });
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => end(`stopped by ${signal}`));

const begun = join(folder, 'shape.json');
const shape = JSON.stringify({ rows, dimension: DIMENSION, seed: SEED, basis: basis.digest });
if (!existsSync(begun)) refuseWithoutDisk();
else if (readFileSync(begun, 'utf8') !== shape)
  throw new Error(`${folder} has the files of another run. Remove it, or choose another --folder.`);
mkdirSync(folder, { recursive: true });
writeFileSync(begun, shape);
let isDiskFull = false;
const watch = setInterval(() => {
  if (freeBytes() >= estimates.RESERVED_DISK_BYTES) return;
  isDiskFull = true;
  end(`less than ${estimates.RESERVED_DISK_BYTES} bytes of disk are free`);
}, 2000);

const endpoint = await openVectorEndpoint(basis, SEED);
/** What a step gets. */
const run = {
  rows,
  folder,
  corpus: join(folder, 'corpus.jsonl'),
  index,
  files: rowFiles(join(folder, 'rows'), rows),
  indexFiles,
  basis,
  seed: SEED,
  k: K,
  checked: CHECKED_QUERIES,
  endpoint,
  resultOf,
  signal: stop.signal,
  note,
};
try {
  const todo = estimates.SIZE_STEPS.filter((step) => wanted.includes(step) && !existsSync(resultFile(step)));
  for (const [i, step] of todo.entries()) {
    stop.signal.throwIfAborted();
    const minutes = Math.ceil(estimates.expectedSeconds(todo.slice(i), rows) / 60);
    note(`${step}; about ${minutes} minutes left on an idle machine`);
    const loadBefore = loadNow();
    const result = await STEPS[step](run);
    writeFileSync(resultFile(step), JSON.stringify({ ...result, loadBefore }));
  }
  if (estimates.SIZE_STEPS.every((step) => existsSync(resultFile(step)))) finish();
} catch (error) {
  if (!stop.signal.aborted) throw error;
  process.exitCode = 1;
} finally {
  clearInterval(watch);
  endpoint.close();
  // Only now: the step wrote to it until it ended.
  if (isDiskFull) rmSync(folder, { recursive: true, force: true });
}

function refuseWithoutDisk() {
  const needed = estimates.sizeDiskBytes(rows, DIMENSION) + estimates.RESERVED_DISK_BYTES;
  if (needed <= freeBytes()) return;
  throw new Error(
    `${rows} rows need ${needed} bytes of disk, ${estimates.RESERVED_DISK_BYTES} of them to stay free, but ${folder} has only ` +
      `${freeBytes()}. Use fewer --rows, or another --folder.`,
  );
}

function freeBytes() {
  const { bavail, bsize } = statfsSync(existsSync(folder) ? folder : dirname(folder));
  return bavail * bsize;
}

/** Stops the step that runs; no other begins. */
function end(reason) {
  if (stop.signal.aborted) return;
  note(reason);
  stop.abort(new Error(reason));
}

function resultFile(step) {
  return join(folder, `${step}.json`);
}

function resultOf(step) {
  return JSON.parse(readFileSync(resultFile(step), 'utf8'));
}

function finish() {
  const { best, ...scanned } = resultOf('scan');
  const steps = Object.fromEntries(
    estimates.SIZE_STEPS.map((step) => [step, step === 'scan' ? scanned : resultOf(step)]),
  );
  const bytesOf = (name) => indexFiles(name).reduce((sum, path) => sum + statSync(path).size, 0);
  const { engines: _none, ...environment } = machineFacts({ engines: [], loadBefore: steps.memory.loadBefore });
  const bytes = {
    rows: run.files.pieces.reduce((sum, { path }) => sum + statSync(path).size, 0),
    codes: bytesOf('codes.i8'),
    prefilters: bytesOf('prefilter.i8'),
    passages: bytesOf('passages.sqlite'),
  };
  const text = JSON.stringify({ environment, rows, dimension: DIMENSION, k: K, bytes, steps }, null, 2);
  process.stdout.write(`${text}\n`);
  if (args.out !== undefined) writeFileSync(args.out, `${text}\n`);
  if (!args.keep) rmSync(folder, { recursive: true });
}

function indexFiles(name) {
  return globSync(join(index, 'shard-*', name)).sort();
}

function note(text) {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);
}

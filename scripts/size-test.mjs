// `npm run test:size`: 21,000,000 × 768 float16 rows of E5's distribution, imported, opened, served and compared with a scan.
// - rows: generates the rows in files of a million.         - corpus: a short passage for each row.
// - index: imports the rows in place.                       - scan: finds the best rows of 8 queries by reading all rows.
// - plan: what `trawl serve --plan` expects.                - open: time until the server is ready, with cold and warm files.
// - memory: requests of 1, 16, 64 and 512 queries.          - prefilter: the same in a memory control group that holds little more
//                                                             than the prefilters (root, Linux).
// Each step keeps its result in the folder, so that a stopped run resumes; `-- --steps open,memory` runs only these. The last step
// writes --out and removes the folder, unless --keep. `--rows N` makes it smaller; `--folder F` chooses the disk.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { root, setup } from './setup.mjs';

const DIMENSION = 768;
const SEED = 1;
const K = 10;
const CHECKED_QUERIES = 8;
const REQUESTS = [1, 16, 64, 512];
/** Requests of a size: at most MOST, and no further one after BUDGET_MS. */
const MOST = 7;
const BUDGET_MS = 40_000;
const LONGEST_MS = 240_000;
/** Memory of a server besides the prefilters, in a control group that holds little else. */
const GROUP_BYTES = 1_500_000_000;

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
const { basisFor } = await import('../dist/bench/flat/bench-flat.js');
const { machineFacts, loadNow } = await import('../dist/bench/environment.js');
const { cachedShare, dropFromCache } = await import('../dist/bench/size/page-cache.js');
const { rowFiles, writeRows } = await import('../dist/bench/size/row-files.js');
const { scanRows } = await import('../dist/bench/size/scan-rows.js');
const estimates = await import('../dist/bench/size/size-estimates.js');
const { openVectorEndpoint, queryText } = await import('../dist/bench/size/vector-endpoint.js');
const { heldOutQueries } = await import('../dist/bench/flat/queries.js');
const { limitedGroup } = await import('../dist/test/helpers/limited-group.js');

const rows = Number(args.rows);
if (!Number.isSafeInteger(rows) || rows < 1) throw new Error(`--rows must be a positive integer, not ${args.rows}`);
const wanted = args.steps?.split(',') ?? estimates.SIZE_STEPS;
const unknown = wanted.filter((step) => !estimates.SIZE_STEPS.includes(step));
if (unknown.length > 0) throw new Error(`--steps: ${unknown} is none of ${estimates.SIZE_STEPS}`);
const folder = resolve(args.folder);
const [corpus, index] = [join(folder, 'corpus.jsonl'), join(folder, 'index')];
const basis = basisFor({ dimension: DIMENSION });
const stop = new AbortController();
const children = new Set();
/** Queries that no request had before. The first are those of the check. */
let nextQuery = CHECKED_QUERIES;
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => end(`stopped by ${signal}`));

const begun = join(folder, 'shape.json');
const shape = JSON.stringify({ rows, dimension: DIMENSION, seed: SEED, basis: basis.digest });
if (!existsSync(begun)) refuseWithoutDisk();
else if (readFileSync(begun, 'utf8') !== shape)
  throw new Error(`${folder} has the files of another run. Remove it, or choose another --folder.`);
mkdirSync(folder, { recursive: true });
writeFileSync(begun, shape);
const watch = setInterval(() => {
  if (freeBytes() >= estimates.RESERVED_DISK_BYTES) return;
  end(`less than ${estimates.RESERVED_DISK_BYTES} bytes of disk are free`);
  rmSync(folder, { recursive: true, force: true });
}, 2000);

const endpoint = await openVectorEndpoint(basis, SEED);
try {
  const todo = estimates.SIZE_STEPS.filter((step) => wanted.includes(step) && !existsSync(resultFile(step)));
  for (const [i, step] of todo.entries()) {
    const minutes = Math.ceil(estimates.expectedSeconds(todo.slice(i), rows) / 60);
    note(`${step}; about ${minutes} minutes left on an idle machine`);
    const loadBefore = loadNow();
    const result = await {
      rows: makeRows,
      corpus: makeCorpus,
      index: build,
      scan,
      plan,
      open: opening,
      memory,
      prefilter,
    }[step]();
    writeFileSync(resultFile(step), JSON.stringify({ ...result, loadBefore }));
  }
  if (estimates.SIZE_STEPS.every((step) => existsSync(resultFile(step)))) finish();
} finally {
  clearInterval(watch);
  for (const child of children) child.kill('SIGTERM');
  endpoint.close();
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

/** Stops everything that runs. */
function end(reason) {
  note(reason);
  stop.abort();
  for (const child of children) child.kill('SIGTERM');
  process.exitCode = 1;
}

function resultFile(step) {
  return join(folder, `${step}.json`);
}

async function makeRows() {
  const from = performance.now();
  await writeRows(folder, { basis, seed: SEED, rows }, { signal: stop.signal, note });
  return { seconds: secondsSince(from) };
}

async function makeCorpus() {
  const from = performance.now();
  const file = await open(corpus, 'w');
  for (let first = 0; first < rows; first += 100_000) {
    const count = Math.min(100_000, rows - first);
    await file.write(
      Array.from({ length: count }, (_, i) => `{"id":${first + i},"contents":"p${first + i}"}\n`).join(''),
    );
    stop.signal.throwIfAborted();
  }
  await file.sync();
  await file.close();
  return { seconds: secondsSince(from) };
}

async function build() {
  const { header, pieces } = files();
  const from = performance.now();
  const words = ['--corpus', corpus, '--model', endpoint.url, '--check-model', '0', '--shard-rows', '1000000'];
  const child = start(['import', header, ...pieces.map(({ path }) => path), ...words, '--out', index, '--json']);
  createInterface(child.process.stderr).on('line', (line) => note(line.slice(0, 300)));
  let text = '';
  child.process.stdout.on('data', (data) => (text += data));
  const { code, peakBytes } = await child.ended;
  if (code !== 0) throw new Error(`trawl import ended with ${code}; the same command resumes it`);
  return { seconds: secondsSince(from), peakBytes, stageMs: JSON.parse(text).stageMs };
}

async function scan() {
  const from = performance.now();
  const { values } = heldOutQueries(basis, CHECKED_QUERIES, SEED);
  const best = await scanRows(files().pieces, { queries: values, dimension: DIMENSION, k: K, note });
  return { seconds: secondsSince(from), best };
}

async function plan() {
  const child = start(['serve', index, '--model', endpoint.url, '--plan', '--json']);
  let text = '';
  child.process.stdout.on('data', (data) => (text += data));
  child.process.stderr.pipe(process.stderr);
  const { code } = await child.ended;
  // 3: the machine has too little memory.
  if (code !== 0 && code !== 3) throw new Error(`trawl serve --plan ended with ${code}`);
  const [{ residentBytes, search }] = JSON.parse(text).indexes;
  const { trial, expected } = search;
  return { residentBytes, trial, searches: expected[0].searches };
}

async function opening() {
  // Pages that are not written yet stay in the cache.
  await once(spawn('sync', ['--file-system', folder], { stdio: 'ignore' }), 'close');
  await dropFromCache(indexFiles('*'));
  const times = {};
  for (const state of ['cold', 'warm']) {
    const server = await serve();
    const readyMs = server.readyMs;
    const { ms: firstMs } = await ask(server, 1);
    await server.stop();
    times[state] = { readyMs, firstMs };
  }
  return times;
}

async function memory() {
  return measure(undefined);
}

async function prefilter() {
  const limit = indexFiles('prefilter.i8').reduce((sum, path) => sum + statSync(path).size, 0) + GROUP_BYTES;
  const group = limitedGroup({ memoryBytes: limit });
  if ('missing' in group) throw new Error(`The step prefilter needs root and a memory control group: ${group.missing}`);
  // Pages count for the group that reads them first.
  await dropFromCache([...indexFiles('*'), ...files().pieces.map(({ path }) => path)]);
  try {
    return { limitBytes: limit, ...(await measure(group)) };
  } finally {
    group.remove();
  }
}

/** The check of the first queries, then requests of each size. */
async function measure(group) {
  const server = await serve(group);
  try {
    await ask(server, 1);
    const checkedQueries = await compareWithScan(server);
    const requests = [];
    for (const queries of REQUESTS) requests.push(await timeRequests(server, queries));
    return {
      requests,
      checkedQueries,
      anonymousBytes: statusOf(server.pid, 'RssAnon'),
      mappedBytes: statusOf(server.pid, 'RssFile'),
      cached: {
        prefilters: await cachedShare(indexFiles('prefilter.i8')),
        codes: await cachedShare(indexFiles('codes.i8')),
        vectors: await cachedShare(files().pieces.map(({ path }) => path)),
      },
    };
  } finally {
    await server.stop();
  }
}

/** The median of several requests, or null if the first of them takes longer than LONGEST_MS. */
async function timeRequests(server, queries) {
  const runs = [];
  const from = performance.now();
  while (runs.length < MOST && (runs.length === 0 || performance.now() - from < BUDGET_MS)) {
    const run = await ask(server, queries).catch((error) => {
      if (error.name === 'TimeoutError') return undefined;
      throw error;
    });
    note(`${queries} queries: ${JSON.stringify(run) ?? `longer than ${LONGEST_MS} ms`}`);
    if (run === undefined) break;
    runs.push(run);
  }
  if (runs.length === 0) return { queries, runs: 0, ms: null, longerThanMs: LONGEST_MS };
  runs.sort((a, b) => a.ms - b.ms);
  const { ms, searchMs, readBytes } = runs[Math.floor((runs.length - 1) / 2)];
  return { queries, runs: runs.length, ms, searchMs, readBytes, fastestMs: runs[0].ms, slowestMs: runs.at(-1).ms };
}

/** The best rows over HTTP must be those of the scan, with its scores in float32. */
async function compareWithScan(server) {
  const { best } = JSON.parse(readFileSync(resultFile('scan'), 'utf8'));
  const { results } = await post(
    server,
    Array.from({ length: CHECKED_QUERIES }, (_, i) => queryText(i)),
  );
  for (const [i, expected] of best.entries()) {
    const found = results[i].hits.map(({ row, score }) => ({ row, score }));
    const rounded = expected.map(({ row, score }) => ({ row, score: Math.fround(score) }));
    if (JSON.stringify(found) !== JSON.stringify(rounded))
      throw new Error(`query ${i}: found ${JSON.stringify(found)}, but a scan of all rows ${JSON.stringify(rounded)}`);
    if (results[i].certificate.exact !== true) throw new Error(`query ${i} has no certificate`);
  }
  return best.length;
}

async function ask(server, count) {
  const texts = Array.from({ length: count }, () => queryText(nextQuery++));
  const readBefore = diskReadBytes(server.pid);
  const from = performance.now();
  const { results, timings } = await post(server, texts);
  const ms = performance.now() - from;
  if (results.some(({ hits }) => hits?.length !== K)) throw new Error(`a query has not ${K} hits`);
  const readBytes = diskReadBytes(server.pid) - readBefore;
  return { ms: Math.round(ms), searchMs: Math.round(timings.searchMs), readBytes };
}

/** Not `fetch`, which gives up after five minutes without a reply. */
async function post({ url }, queries) {
  const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(LONGEST_MS)]);
  const headers = { 'content-type': 'application/json' };
  const call = request(`${url}/v1/search`, { method: 'POST', headers, signal });
  call.end(JSON.stringify({ queries, k: K }));
  const [reply] = await once(call, 'response').catch((error) => Promise.reject(signal.reason ?? error));
  const body = await json(reply);
  if (reply.statusCode !== 200) throw new Error(`status ${reply.statusCode}: ${JSON.stringify(body)}`);
  return body;
}

async function serve(group) {
  const from = performance.now();
  const words = ['serve', index, '--port', '0', '--json', '--cache-bytes', '0', '--model', endpoint.url];
  const child = start(words, group);
  child.process.stderr.resume();
  const [line] = await Promise.race([
    once(createInterface(child.process.stdout), 'line'),
    child.ended.then(({ code }) => Promise.reject(new Error(`trawl serve ended with ${code}`))),
  ]);
  const readyMs = Math.round(performance.now() - from);
  const { url, pid } = JSON.parse(line);
  const stopServer = async () => {
    child.process.kill('SIGTERM');
    await child.ended;
  };
  return { url, pid, readyMs, stop: stopServer };
}

function start(words, group) {
  const command = [process.execPath, join(root, 'dist', 'cli', 'trawl.js'), ...words];
  const child =
    group === undefined
      ? spawn(command[0], command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] })
      : group.spawn(command, { env: process.env });
  children.add(child);
  let peakBytes = 0;
  const timer = setInterval(() => (peakBytes = Math.max(peakBytes, statusOf(child.pid, 'VmHWM'))), 200);
  const ended = once(child, 'close').then(([code]) => {
    clearInterval(timer);
    children.delete(child);
    return { code, peakBytes };
  });
  return { process: child, ended };
}

function finish() {
  const read = (step) => JSON.parse(readFileSync(resultFile(step), 'utf8'));
  const { best, ...scanned } = read('scan');
  const steps = Object.fromEntries(estimates.SIZE_STEPS.map((step) => [step, step === 'scan' ? scanned : read(step)]));
  const bytesOf = (name) => indexFiles(name).reduce((sum, path) => sum + statSync(path).size, 0);
  const { engines: _none, ...environment } = machineFacts({ engines: [], loadBefore: steps.memory.loadBefore });
  const bytes = {
    rows: files().pieces.reduce((sum, { path }) => sum + statSync(path).size, 0),
    codes: bytesOf('codes.i8'),
    prefilters: bytesOf('prefilter.i8'),
    passages: bytesOf('passages.sqlite'),
  };
  const text = JSON.stringify({ environment, rows, dimension: DIMENSION, k: K, bytes, steps }, null, 2);
  process.stdout.write(`${text}\n`);
  if (args.out !== undefined) writeFileSync(args.out, `${text}\n`);
  if (!args.keep) rmSync(folder, { recursive: true });
}

function files() {
  return rowFiles(join(folder, 'rows'), rows);
}

function indexFiles(name) {
  return globSync(join(index, 'shard-*', name)).sort();
}

/** Bytes that a process has read from the disk, those of mapped files included. */
function diskReadBytes(pid) {
  return Number(/^read_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))[1]);
}

/** A field of /proc/PID/status in bytes; 0 for a process that has ended. */
function statusOf(pid, field) {
  try {
    const [, kilobytes] = new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return 1024 * Number(kilobytes ?? 0);
  } catch {
    return 0;
  }
}

function note(text) {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);
}

function secondsSince(from) {
  return Math.round((performance.now() - from) / 100) / 10;
}

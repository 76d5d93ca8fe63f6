// 21 million rows of a FAISS file adopted, searched and served: time, memory and bytes (16 GB of disk).
// `--rows 21000000 --dimension 64` sets the size. The steps:
// - generate: writes a FAISS file of random unit vectors, and a corpus with one short passage per vector.
// - passages: imports them, and stops the import with SIGTERM when the passages are stored.
// - vectors: resumes the import.
// - search: searches for rows around 2^31 bytes and 2^24 rows, and compares the results with a scan in JavaScript.
// - serve: starts a server and measures the time until it is ready, and its memory.
// `--folder F` keeps the files; `--steps vectors,search` runs only these steps.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { secondsSince, serveTrawl, startTrawl, statusBytes } from '../measured-trawl.mjs';
import { setup } from '../setup.mjs';

const STEPS = ['generate', 'passages', 'vectors', 'search', 'serve'];
const HEADER_BYTES = 45;
const BLOCK_ROWS = 65_536;
const K = 10;
const { values: args } = parseArgs({
  options: {
    rows: { type: 'string', default: '21000000' },
    dimension: { type: 'string', default: '64' },
    folder: { type: 'string' },
    steps: { type: 'string', default: STEPS.join() },
  },
});
const [rows, dimension] = [Number(args.rows), Number(args.dimension)];
const rowBytes = 4 * dimension;
const steps = args.steps.split(',');
await setup();
const { dropFromCache } = await import('../../dist/bench/size/page-cache.js');
const { scanRows } = await import('../../dist/bench/size/scan-rows.js');
const { encodeFlatHeader } = await import('../../dist/src/engine/vectors/faiss-format.js');
const { openIndexDirectory } = await import('../../dist/src/search/opening/index-directory.js');
const { openEngine } = await import('../../dist/src/engine/vectors/open-engine.js');

const folder = args.folder ?? mkdtempSync(join(tmpdir(), 'trawl-adopt-'));
mkdirSync(folder, { recursive: true });
const [faiss, corpus, index] = [join(folder, 'flat.faiss'), join(folder, 'corpus.jsonl'), join(folder, 'index')];
const model = dimension <= 256 ? ['--model', 'token-average-256', '--dimension', String(dimension)] : [];
if (model.length === 0) throw new Error('--dimension is larger than 256, the dimension of the bundled encoder.');
const result = { rows, dimension, fileBytes: HEADER_BYTES + rows * rowBytes };
try {
  for (const step of STEPS) {
    if (!steps.includes(step)) continue;
    process.stderr.write(`${step}\n`);
    Object.assign(result, await { generate, passages, vectors, search, serve }[step]());
  }
  process.stdout.write(`${JSON.stringify(result)}\n`);
} finally {
  if (args.folder === undefined) rmSync(folder, { recursive: true });
}

async function generate() {
  const begun = performance.now();
  const file = await open(faiss, 'w');
  await file.write(encodeFlatHeader({ rows, dimension, metric: 'inner-product' }));
  const text = await open(corpus, 'w');
  let state = 1;
  for (let first = 0; first < rows; first += BLOCK_ROWS) {
    const count = Math.min(BLOCK_ROWS, rows - first);
    const block = new Float32Array(count * dimension);
    for (let i = 0; i < block.length; i += dimension) {
      let sum = 0;
      for (let j = i; j < i + dimension; j++) {
        state ^= state << 13;
        state ^= state >>> 17;
        state ^= state << 5;
        block[j] = state / 2 ** 31;
        sum += block[j] * block[j];
      }
      const norm = Math.sqrt(sum);
      for (let j = i; j < i + dimension; j++) block[j] /= norm;
    }
    await file.write(new Uint8Array(block.buffer));
    await text.write(
      Array.from({ length: count }, (_, i) => `{"id":${first + i},"contents":"p${first + i}"}\n`).join(''),
    );
  }
  await file.sync();
  await file.close();
  await text.close();
  return { generateS: secondsSince(begun), corpusBytes: statSync(corpus).size };
}

function importing() {
  const options = [
    '--corpus',
    corpus,
    ...model,
    '--check-model',
    '0',
    '--metric',
    'inner-product',
    '--out',
    index,
    '--json',
  ];
  return startTrawl(['import', faiss, ...options]);
}

/** Imports until the vectors' stage begins, then sends SIGTERM. */
async function passages() {
  const begun = performance.now();
  const child = importing();
  for await (const line of createInterface(child.process.stderr)) {
    if (line.includes('"stage":"vectors"')) child.process.kill('SIGTERM');
    else process.stderr.write(`${line}\n`);
  }
  const { code, peakBytes } = await child.ended;
  if (code !== 75) throw new Error(`import exited with ${code} after SIGTERM, not with 75`);
  return { passagesS: secondsSince(begun), passagesPeakBytes: peakBytes };
}

async function vectors() {
  const cat = async () => {
    const begun = performance.now();
    const child = spawn('cat', [faiss], { stdio: ['ignore', 'ignore', 'inherit'] });
    await once(child, 'close');
    return secondsSince(begun);
  };
  await dropFromCache([faiss]);
  const catS = await cat();
  await dropFromCache([faiss]);
  const begun = performance.now();
  const child = importing();
  child.process.stderr.pipe(process.stderr);
  let text = '';
  child.process.stdout.on('data', (data) => (text += data));
  const { code, peakBytes } = await child.ended;
  if (code !== 0) throw new Error(`import exited with ${code}`);
  const importS = secondsSince(begun);
  const { stageMs, shards } = JSON.parse(text);
  const vectorsS = Number((stageMs.vectors / 1000).toFixed(1));
  return {
    catS,
    vectorsS,
    shareOfCat: Number((catS / vectorsS).toFixed(2)),
    importS,
    finishS: Number((stageMs.finish / 1000).toFixed(1)),
    shards,
    importPeakBytes: peakBytes,
    indexBytes: bytesBelow(index),
  };
}

async function search() {
  const wanted = [
    0,
    2 ** 23,
    2 ** 24 - 1,
    2 ** 24,
    2 ** 24 + 1,
    Math.ceil((2 ** 31 - HEADER_BYTES) / rowBytes),
    rows - 1,
  ]
    .filter((row) => row < rows)
    .sort((a, b) => a - b);
  const file = await open(faiss, 'r');
  const queries = new Float32Array(wanted.length * dimension);
  for (const [i, row] of wanted.entries()) {
    const bytes = new Uint8Array(queries.buffer, i * rowBytes, rowBytes);
    await file.read(bytes, 0, rowBytes, HEADER_BYTES + row * rowBytes);
  }
  await file.close();
  const openedAt = performance.now();
  const engine = await openEngine(openIndexDirectory(index).source);
  const openMs = Math.round(performance.now() - openedAt);
  const searchedAt = performance.now();
  const found = await engine.search({ queries, count: wanted.length, k: K });
  const searchMs = Math.round(performance.now() - searchedAt);
  await engine.close();
  const padded = new Float32Array(4 * Math.ceil(wanted.length / 4) * dimension);
  padded.set(queries);
  const pieces = [{ path: faiss, first: 0, rows, offset: HEADER_BYTES }];
  const note = (text) => process.stderr.write(`${text}\n`);
  const scanned = await scanRows(pieces, { queries: padded, dimension, k: K, dtype: 'float32', note });
  for (const [i, best] of scanned.slice(0, wanted.length).entries()) {
    const rowsFound = [...found.rows.subarray(i * K, (i + 1) * K)];
    const scores = [...found.scores.subarray(i * K, (i + 1) * K)];
    if (rowsFound[0] !== wanted[i]) throw new Error(`row ${wanted[i]} is not its own nearest: ${rowsFound}`);
    if (`${rowsFound}` !== `${best.map(({ row }) => row)}`)
      throw new Error(`query ${i}: ${rowsFound} for ${JSON.stringify(best)}`);
    if (scores.some((score, j) => score !== best[j].score)) throw new Error(`query ${i}: scores ${scores}`);
  }
  return { queriesCompared: wanted.length, rowsAsked: wanted, openMs, searchMs };
}

async function serve() {
  const server = await serveTrawl([index]);
  try {
    const readyBytes = statusBytes(server.pid, 'VmHWM');
    const reply = await fetch(`${server.url}/retrieve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ queries: ['what is exact retrieval'], topk: 3, return_scores: true }),
    });
    const { result: answers } = await reply.json();
    if (answers[0].length !== 3) throw new Error(`the server answered ${JSON.stringify(answers)}`);
    return { readyMs: server.readyMs, readyBytes };
  } finally {
    await server.stop();
  }
}

function bytesBelow(path) {
  if (!existsSync(path)) return 0;
  return readdirSync(path, { withFileTypes: true }).reduce((sum, entry) => {
    const below = join(path, entry.name);
    return sum + (entry.isDirectory() ? bytesBelow(below) : statSync(below).size);
  }, 0);
}

// An index of a corpus built at once and by 8 jobs, searched and compared bit for bit: `shards CORPUS.jsonl`.
// Both have the bundled encoder; the queries are texts of the corpus.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root, setup } from '../setup.mjs';

const SHARDS = 8;
const QUERIES = 512;
const K = 100;
const corpus = process.argv[2];
if (corpus === undefined) throw new Error('No corpus given. Usage: npm run check -- shards CORPUS.jsonl');
await setup();
const { openIndexDirectory } = await import('../../dist/src/search/opening/index-directory.js');
const { openEngine } = await import('../../dist/src/engine/vectors/open-engine.js');
const { openEncoder } = await import('../../dist/src/encoder/open-encoder.js');
const { PassageFile } = await import('../../dist/src/index/passages/passage-file.js');

const folder = mkdtempSync(join(tmpdir(), 'trawl-shards-'));
const [one, many] = [join(folder, 'one'), join(folder, 'many')];
try {
  const oneMs = await timed(() => trawl('index', corpus, '--out', one));
  // Two at a time, because small machines have two cores.
  const jobs = Array.from({ length: SHARDS }, (_, i) => [
    'index',
    corpus,
    '--out',
    many,
    '--shard',
    `${i}/${SHARDS}`,
    '--workers',
    '1',
  ]);
  const next = async () => {
    for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) await trawl(...job);
  };
  const manyMs = await timed(() => Promise.all([next(), next()]));
  const mergeMs = await timed(() => trawl('merge', many));
  const results = [];
  const encoder = await openEncoder('token-average-256');
  const { vectors } = await encoder.encode(texts(one), { inputType: 'query' });
  await encoder.close();
  for (const index of [one, many]) {
    const engine = await openEngine(openIndexDirectory(index).source);
    results.push(await engine.search({ queries: vectors, count: QUERIES, k: K }));
    await engine.close();
  }
  const bits = ({ rows, scores }) => Buffer.concat([Buffer.from(rows.buffer), Buffer.from(scores.buffer)]);
  const equal = bits(results[0]).equals(bits(results[1]));
  const { rows } = openIndexDirectory(many).manifest;
  const seconds = (ms) => Number((ms / 1000).toFixed(1));
  process.stdout.write(
    `${JSON.stringify({ rows, shards: SHARDS, queries: QUERIES, k: K, equal, oneSeconds: seconds(oneMs), jobsSeconds: seconds(manyMs), mergeSeconds: seconds(mergeMs) })}\n`,
  );
  process.exitCode = equal ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true });
}

function texts(index) {
  const { passages } = openIndexDirectory(index);
  const file = new PassageFile(passages[0].path);
  const step = Math.max(1, Math.floor(passages[0].rows / QUERIES));
  const found = Array.from({ length: QUERIES }, (_, i) => {
    const { contents, text } = JSON.parse(file.document((i * step) % passages[0].rows));
    return (contents ?? text).slice(0, 200);
  });
  file.close();
  return found;
}

async function trawl(...args) {
  const child = spawn(process.execPath, [join(root, 'dist', 'cli', 'trawl.js'), ...args, '--quiet'], {
    stdio: 'inherit',
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`trawl ${args.join(' ')} exited with ${code}`);
}

async function timed(run) {
  const begun = performance.now();
  await run();
  return performance.now() - begun;
}

// The steps of scripts/checks/size.mjs that start a server: plan, open, memory, prefilter.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { json } from 'node:stream/consumers';
import { cachedShare, dropFromCache } from '../../../dist/bench/size/page-cache.js';
import { queryText } from '../../../dist/bench/size/vector-endpoint.js';
import { limitedGroup } from '../../../dist/test/helpers/limited-group.js';
import { serveTrawl, startTrawl, statusBytes } from '../../measured-trawl.mjs';

const REQUESTS = [1, 16, 64, 512];
/** Requests of a size: at most MOST, and no further one after BUDGET_MS. */
const MOST = 7;
const BUDGET_MS = 40_000;
const LONGEST_MS = 240_000;
/** Memory of a server besides the prefilters, in a control group that holds little else. */
const GROUP_BYTES = 1_500_000_000;

/** Queries that were asked, after those of the check. */
let asked = 0;

export async function plan({ index, endpoint, signal }) {
  const child = startTrawl(['serve', index, '--model', endpoint.url, '--plan', '--json'], { signal });
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

export async function open(run) {
  // Pages that are not written yet stay in the cache.
  await once(spawn('sync', ['--file-system', run.folder], { stdio: 'ignore' }), 'close');
  await dropFromCache(run.indexFiles('*'));
  const times = {};
  for (const state of ['cold', 'warm']) {
    const server = await serve(run);
    try {
      const { ms: firstMs } = await ask(run, server, 1);
      times[state] = { readyMs: server.readyMs, firstMs };
    } finally {
      await server.stop();
    }
  }
  return times;
}

export async function memory(run) {
  return measure(run, undefined);
}

export async function prefilter(run) {
  const limit = run.indexFiles('prefilter.i8').reduce((sum, path) => sum + statSync(path).size, 0) + GROUP_BYTES;
  const group = limitedGroup({ memoryBytes: limit });
  if ('missing' in group) throw new Error(`The step prefilter needs root and a memory control group: ${group.missing}`);
  try {
    // Pages count for the group that reads them first.
    await dropFromCache([...run.indexFiles('*'), ...run.files.pieces.map(({ path }) => path)]);
    return { limitBytes: limit, ...(await measure(run, group)) };
  } finally {
    group.remove();
  }
}

/** The check of the first queries, then requests of each size. */
async function measure(run, group) {
  const server = await serve(run, group);
  try {
    await ask(run, server, 1);
    const checkedQueries = await compareWithScan(run, server);
    const requests = [];
    for (const queries of REQUESTS) requests.push(await timeRequests(run, server, queries));
    return {
      requests,
      checkedQueries,
      anonymousBytes: statusBytes(server.pid, 'RssAnon'),
      mappedBytes: statusBytes(server.pid, 'RssFile'),
      cached: {
        prefilters: await cachedShare(run.indexFiles('prefilter.i8')),
        codes: await cachedShare(run.indexFiles('codes.i8')),
        vectors: await cachedShare(run.files.pieces.map(({ path }) => path)),
      },
    };
  } finally {
    await server.stop();
  }
}

/** The median of several requests, or null if the first of them takes longer than LONGEST_MS. */
async function timeRequests(run, server, queries) {
  const runs = [];
  const from = performance.now();
  while (runs.length < MOST && (runs.length === 0 || performance.now() - from < BUDGET_MS)) {
    const timed = await ask(run, server, queries).catch((error) => {
      if (error.name === 'TimeoutError') return undefined;
      throw error;
    });
    run.note(`${queries} queries: ${JSON.stringify(timed) ?? `longer than ${LONGEST_MS} ms`}`);
    if (timed === undefined) break;
    runs.push(timed);
  }
  if (runs.length === 0) return { queries, runs: 0, ms: null, longerThanMs: LONGEST_MS };
  runs.sort((a, b) => a.ms - b.ms);
  const { ms, searchMs, readBytes } = runs[Math.floor((runs.length - 1) / 2)];
  return { queries, runs: runs.length, ms, searchMs, readBytes, fastestMs: runs[0].ms, slowestMs: runs.at(-1).ms };
}

/** The best rows over HTTP must be those of the scan, with its scores in float32. */
async function compareWithScan(run, server) {
  const { best } = run.resultOf('scan');
  const texts = Array.from({ length: run.checked }, (_, i) => queryText(i));
  const { results } = await post(run, server, texts);
  for (const [i, expected] of best.entries()) {
    const found = results[i].hits.map(({ row, score }) => ({ row, score }));
    const rounded = expected.map(({ row, score }) => ({ row, score: Math.fround(score) }));
    if (JSON.stringify(found) !== JSON.stringify(rounded))
      throw new Error(`query ${i}: found ${JSON.stringify(found)}, but a scan of all rows ${JSON.stringify(rounded)}`);
    if (results[i].certificate.exact !== true) throw new Error(`query ${i} has no certificate`);
  }
  return best.length;
}

/** Asks queries that no request had before. */
async function ask(run, server, count) {
  const texts = Array.from({ length: count }, () => queryText(run.checked + asked++));
  const readBefore = diskReadBytes(server.pid);
  const from = performance.now();
  const { results, timings } = await post(run, server, texts);
  const ms = performance.now() - from;
  if (results.some(({ hits }) => hits?.length !== run.k)) throw new Error(`a query has not ${run.k} hits`);
  const readBytes = diskReadBytes(server.pid) - readBefore;
  return { ms: Math.round(ms), searchMs: Math.round(timings.searchMs), readBytes };
}

/** Not `fetch`, which gives up after five minutes without a reply. */
async function post({ k, signal: stopped }, { url }, queries) {
  const signal = AbortSignal.any([stopped, AbortSignal.timeout(LONGEST_MS)]);
  const headers = { 'content-type': 'application/json' };
  const call = request(`${url}/v1/search`, { method: 'POST', headers, signal });
  call.end(JSON.stringify({ queries, k }));
  const [reply] = await once(call, 'response').catch((error) => Promise.reject(signal.reason ?? error));
  const body = await json(reply);
  if (reply.statusCode !== 200) throw new Error(`status ${reply.statusCode}: ${JSON.stringify(body)}`);
  return body;
}

function serve({ index, endpoint, signal }, group) {
  return serveTrawl([index, '--cache-bytes', '0', '--model', endpoint.url], { group, signal });
}

/** Bytes that a process has read from the disk, those of mapped files included. */
function diskReadBytes(pid) {
  return Number(/^read_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))[1]);
}

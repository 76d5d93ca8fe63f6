/**
 * What a server is put through, counted: `node scripts/serve-trials.mjs INDEX OTHER [--clients 4] [--seconds 60] [--connections 100000]`.
 * INDEX and OTHER are two indexes with other ids; the server opens a link that is turned from one to the other each second
 * while clients ask, its log on a full disk. Every answer is compared with the one that its generation gave at first.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  options: {
    clients: { type: 'string', default: '4' },
    seconds: { type: 'string', default: '60' },
    connections: { type: 'string', default: '100000' },
  },
  allowPositionals: true,
});
const [index, other] = positionals.map((path) => resolve(path));
if (other === undefined) throw new Error('usage: node scripts/serve-trials.mjs INDEX OTHER');

const CLIENTS = Number(values.clients);
const QUERIES = [
  'designer of the Brooklyn Bridge',
  'longest river',
  'who painted it',
  'capital of Finland',
  'a bridge',
];
const folder = mkdtempSync(join(tmpdir(), 'trawl-trials-'));
const link = join(folder, 'current');
symlinkSync(index, link);

const program = resolve(import.meta.dirname ?? '.', '..', 'dist', 'cli', 'trawl.js');
const log = openSync(existsSync('/dev/full') ? '/dev/full' : '/dev/null', 'w');
const server = spawn(process.execPath, [program, 'serve', link, '--port', '0', '--json'], {
  stdio: ['ignore', 'pipe', log],
});
const [line] = await once(server.stdout.setEncoding('utf8'), 'data');
const { url, pid } = JSON.parse(line);
const port = Number(new URL(url).port);

function state() {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)[1]) / 1024;
}

async function metric(name) {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (.*)$`, 'm').exec(text)?.[1]);
}

const counts = { answers: 0, wrong: 0, failed: 0, swaps: 0, failedSwaps: 0 };
const expected = new Map();
let stop = false;

async function client(number) {
  for (let i = number; !stop; i++) {
    const query = QUERIES[i % QUERIES.length];
    try {
      const response = await fetch(`${url}/v1/search`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ queries: [query], k: 5 }),
      });
      const answer = await response.json();
      if (response.status !== 200) counts.failed++;
      else {
        const key = `${answer.index.generation} ${query}`;
        const hits = JSON.stringify(answer.results[0].hits);
        if (!expected.has(key)) expected.set(key, hits);
        if (expected.get(key) !== hits) counts.wrong++;
        counts.answers++;
      }
    } catch {
      counts.failed++;
    }
  }
}

const before = { rssMib: state(), files: await metric('process_open_fds') };
const clients = Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(i)));
const end = Date.now() + Number(values.seconds) * 1000;
for (let turn = 1; Date.now() < end; turn++) {
  const next = join(folder, 'next');
  symlinkSync(turn % 2 === 0 ? index : other, next);
  renameSync(next, link);
  const response = await fetch(`${url}/admin/indexes/current/reload`, { method: 'POST' });
  if (response.status === 200) counts.swaps++;
  else counts.failedSwaps++;
  await response.arrayBuffer();
  await sleep(1000);
}
stop = true;
await clients;
const generations = new Set([...expected.keys()].map((key) => key.split(' ')[0])).size;
const afterSwaps = {
  rssMib: state(),
  files: await metric('process_open_fds'),
  draining: await metric('trawl_index_draining'),
};

let opened = 0;
const total = Number(values.connections);
async function opener(number) {
  for (let i = number; i < total; i += 64) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    await new Promise((done) => socket.once('connect', done).once('close', done));
    if (i % 4 === 0) {
      socket.write('GET /livez HTTP/1.1\r\nhost: x\r\n\r\n');
      await once(socket, 'data').catch(() => {});
    } else if (i % 4 === 1) socket.write('POST /retrieve HTTP/1.1\r\nhost: x\r\n');
    if (i % 4 === 2) socket.resetAndDestroy();
    else socket.destroy();
    opened++;
  }
}
await Promise.all(Array.from({ length: 64 }, (_, i) => opener(i)));
await sleep(3000);
const after = {
  rssMib: state(),
  files: await metric('process_open_fds'),
  connections: await metric('trawl_connections'),
  droppedLogLines: await metric('trawl_dropped_lines_total'),
};
server.kill('SIGTERM');
const [code] = await once(server, 'exit');
rmSync(folder, { recursive: true, force: true });
console.log(JSON.stringify({ ...counts, generations, before, afterSwaps, opened, after, exitCode: code }, null, 2));

// 20 minutes of full load, with clients that disconnect, stall, never read the answer or send garbage (Linux).
// `--minutes N` and `--seed N` change the load; `--out FILE` writes the figures as JSON.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fail, root, setup } from '../setup.mjs';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    out: { type: 'string' },
  },
});
/** Largest ratio of the last latency to the first one; the machine may have other work. */
const LATENCY_LIMIT = 1.25;
/** Largest growth of the resident memory. */
const GROWTH_LIMIT_MB = 100;

await setup();
const { soak } = await import('../../dist/test/soak/soak.js');
const { leftOpen } = await import('../../dist/test/soak/handles.js');
const { machineFacts } = await import('../../dist/bench/environment.js');
const machine = machineFacts({ engines: [], loadBefore: loadavg()[0] });
const folder = mkdtempSync(join(tmpdir(), 'trawl-soak-'));
const say = (line) => process.stderr.write(`${line}\n`);
let table;
let result;
try {
  const index = join(folder, 'index');
  build(join(root, 'corpus', 'sample', 'passages.jsonl'), index);
  result = await soak({
    index,
    seconds: Number(values.minutes) * 60,
    goodClients: 16,
    hostileClients: 24,
    seed: Number(values.seed),
    onProgress: say,
  });
  table = soakRows(result);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write('| what | outcome | figures |\n| --- | --- | --- |\n');
for (const row of table) process.stdout.write(`| ${row.join(' | ')} |\n`);
if (values.out !== undefined) {
  // Without the samples of the process, which name its files.
  const { samples, memory, ...figures } = result;
  writeFileSync(values.out, `${JSON.stringify({ machine, rows: table, soak: figures }, null, 2)}\n`);
}
process.exitCode = table.some(([, outcome]) => outcome === 'failed') ? 1 : 0;

function build(corpus, out) {
  const program = join(root, 'dist', 'cli', 'trawl.js');
  const { status } = spawnSync(process.execPath, [program, 'index', corpus, '--out', out, '--quiet'], {
    stdio: 'inherit',
  });
  if (status !== 0) fail(`The index ${out} could not be built.`);
}

function soakRows({
  seconds,
  requests,
  queries,
  refused,
  wrong,
  hostile,
  statuses,
  failures,
  latencyMs,
  memory,
  exit,
}) {
  const list = (counts) =>
    Object.entries(counts)
      .map(([what, count]) => `${what} ${count}`)
      .join(', ');
  const { first, last } = latencyMs;
  const { warm, end, idleBefore, idleAfter } = memory;
  const left = leftOpen(idleBefore.targets, idleAfter.targets);
  const mb = (bytes) => (bytes === null ? 'unknown' : `${Math.round(bytes / 1e6)} MB`);
  const row = (what, passed, figures) => [what, passed ? 'passed' : 'failed', figures];
  return [
    row(
      `answers of ${(seconds / 60).toFixed(1)} minutes`,
      Object.keys(wrong).length === 0,
      `${requests} requests, ${queries} queries, ${refused} refused with 503; wrong: ${list(wrong) || 'none'}`,
    ),
    row('misbehaving clients', failures.length === 0, `${list(hostile)}; answers: ${list(statuses)}`),
    row(
      'latency of a query',
      last.p50 <= LATENCY_LIMIT * first.p50,
      `p50 ${first.p50.toFixed(0)} → ${last.p50.toFixed(0)} ms, p99 ${first.p99.toFixed(0)} → ${last.p99.toFixed(0)} ms (second fifth → last fifth)`,
    ),
    row(
      'memory',
      end.rssBytes - warm.rssBytes < GROWTH_LIMIT_MB * 1e6,
      `resident ${mb(warm.rssBytes)} → ${mb(end.rssBytes)}, heap ${mb(warm.heapBytes)} → ${mb(end.heapBytes)} (second fifth → last fifth)`,
    ),
    row(
      'handles and threads',
      left.length === 0 && end.threads <= warm.threads + 1,
      `${left.length === 0 ? '' : `${left.join(', ')}; `}handles ${idleBefore.handles} before, ${warm.handles} → ${end.handles} under load, ${idleAfter.handles} after; threads ${warm.threads} → ${end.threads}`,
    ),
    row('SIGTERM', exit === 0, `exit ${exit}`),
  ];
}

// A server with index swaps, full disks, clock jumps, 100,000 connections and slow clients, every answer checked (Linux).
// The index is swapped each second, its folder is renamed, the disk fills up, the clock jumps, 100,000 connections open, clients are slow
// or send bad requests (test/trials).
// `INDEX OTHER`: two indexes with different answers. Default: two indexes of the sample corpus, built first.
// `--seconds N` per trial, `--connections N`, `--only swaps,clock`; `--out FILE` writes the figures as JSON. Linux only.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { fail, root, setup } from '../setup.mjs';

const { values, positionals } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    connections: { type: 'string', default: '100000' },
    only: { type: 'string' },
    out: { type: 'string' },
  },
  allowPositionals: true,
});
if (process.platform !== 'linux') fail('The trials need /proc, which this system does not have.');
if (positionals.length === 1 || positionals.length > 2)
  fail('Expected two indexes or none: npm run check -- trials INDEX OTHER');

await setup();
const { TRIALS } = await import('../../dist/test/trials/trials.js');
const { runTrials } = await import('../../dist/test/trials/trial.js');
const { otherPassages, otherPrefix } = await import('../../dist/test/trials/other-index.js');
const { machineFacts } = await import('../../dist/bench/environment.js');

const words = values.only?.split(',') ?? Object.keys(TRIALS);
for (const word of words) {
  if (!Object.hasOwn(TRIALS, word)) fail(`--only has ${word}; expected some of ${Object.keys(TRIALS).join(', ')}.`);
}
const seconds = positive('seconds');
const connections = positive('connections');
const machine = machineFacts({ engines: [], loadBefore: loadavg()[0] });
const folder = mkdtempSync(join(tmpdir(), 'trawl-trials-'));
process.once('SIGINT', () => {
  rmSync(folder, { recursive: true, force: true });
  process.exit(130);
});
const results = [];
try {
  const [index, otherIndex] =
    positionals.length === 2 ? positionals.map((path) => resolve(path)) : await sampleIndexes();
  for (const [i, word] of words.entries()) {
    const own = join(folder, word);
    mkdirSync(own);
    const name = `${i + 1}/${words.length} ${TRIALS[word].name}`;
    say(name);
    const options = {
      index,
      otherIndex,
      folder: own,
      seconds,
      connections,
      patient: true,
      onProgress: (line) => say(`  ${line}`),
    };
    const begun = performance.now();
    const [result] = await runTrials([TRIALS[word]], options);
    results.push({ ...result, seconds: Math.round((performance.now() - begun) / 1000) });
    say(`  ${result.outcome}${result.reason === undefined ? '' : `: ${result.reason}`}`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

const { date, processor, cores, loadBefore, node } = machine;
process.stdout.write(
  `${date.slice(0, 10)}, ${processor}, ${cores} cores, load ${loadBefore.toFixed(1)} before and ${loadavg()[0].toFixed(1)} after, Node ${node}, ${seconds} s a trial\n\n`,
);
process.stdout.write('| trial | outcome | counted |\n| --- | --- | --- |\n');
for (const { name, outcome, counts, faults, reason } of results) {
  const details = [reason?.split('\n')[0], list(faults), list(counts)].filter(Boolean).join('; ');
  process.stdout.write(`| ${name} | ${outcome} | ${details} |\n`);
}
if (values.out !== undefined)
  writeFileSync(values.out, `${JSON.stringify({ machine, seconds, connections, results }, null, 2)}\n`);
process.exitCode = results.some(({ outcome }) => outcome === 'failed') ? 1 : 0;

function positive(name) {
  const number = Number(values[name]);
  if (!(number > 0)) fail(`--${name} is ${values[name]}; expected a number above 0.`);
  return number;
}

function say(line) {
  process.stderr.write(`${line}\n`);
}

function list(counts) {
  return Object.entries(counts)
    .map(([what, count]) => `${what} ${typeof count === 'number' ? count.toLocaleString('en') : count}`)
    .join(', ');
}

/** Builds two indexes of the sample corpus with different ids and query prefixes. */
async function sampleIndexes() {
  const sample = join(root, 'corpus', 'sample', 'passages.jsonl');
  const passages = join(folder, 'other.jsonl');
  writeFileSync(passages, await otherPassages(sample));
  return [build(sample, 'index', []), build(passages, 'other', otherPrefix)];
}

function build(corpus, name, options) {
  const program = join(root, 'dist', 'cli', 'trawl.js');
  const out = join(folder, 'indexes', name);
  const args = [program, 'index', corpus, '--out', out, ...options, '--quiet'];
  if (spawnSync(process.execPath, args, { stdio: 'inherit' }).status !== 0)
    fail(`The index ${name} could not be built.`);
  return out;
}

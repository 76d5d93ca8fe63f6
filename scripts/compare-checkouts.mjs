import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { COMPARED_CASES, compare, comparisonTable } from '../dist/bench/comparison.js';
import { cachePath } from './cached-packages.mjs';

// Compares two checkouts with `trawl bench` (bench/README.md). It uses only the command line and the records of the old
// checkout, which may be of any version that has `trawl bench`.
const USAGE = `Usage: node scripts/compare-checkouts.mjs --old DIR [OPTIONS] CASE [BENCH OPTIONS]

Runs \`trawl bench CASE\` of two checkouts alternately and compares the figures.
CASE is one of ${COMPARED_CASES.join(', ')}. BENCH OPTIONS are options of \`trawl bench\`, for both checkouts.

  --old DIR        The old checkout, built (npm run build).
  --new DIR        The new checkout. Default: this one.
  --rounds N       Runs of each checkout. Default: 5. The order changes from round to round: old new, new old, …
  --cache DIR      Folder for vectors, codes and indexes; each checkout gets a folder in it.
                   Default: ~/.cache/trawl/compare.
  --old-node FILE  The Node.js for the old checkout. Default: the one that its bin/trawl finds; without bin/trawl the
                   one that runs this script.
  --new-node FILE  The Node.js for the new checkout.
  --out FILE       Also write the records of every round, as JSON.

"{side}" in BENCH OPTIONS becomes "old" or "new", for files that differ between the checkouts.
Without --against in BENCH OPTIONS no baselines run (--against none).
`;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const words = process.argv.slice(2);
const split = words.findIndex((word) => COMPARED_CASES.includes(word));
const options = split < 0 ? undefined : ownOptions(words.slice(0, split));
if (options === undefined) {
  process.stderr.write(USAGE);
  process.exitCode = 2;
} else await compareCheckouts(options, words[split], words.slice(split + 1));

/** The options before CASE, or undefined if one is unknown or --old is missing. */
function ownOptions(args) {
  try {
    const { old, ...rest } = parseArgs({
      args,
      options: {
        old: { type: 'string' },
        new: { type: 'string', default: root },
        rounds: { type: 'string', default: '5' },
        cache: { type: 'string', default: cachePath('compare') },
        out: { type: 'string' },
        'old-node': { type: 'string' },
        'new-node': { type: 'string' },
      },
    }).values;
    return old === undefined ? undefined : { old, ...rest };
  } catch (error) {
    process.stderr.write(`${error.message}\n\n`);
    return undefined;
  }
}

async function compareCheckouts({ old, new: other, rounds, cache, out, ...nodes }, benchCase, benchOptions) {
  const programs = {
    old: programOf(resolve(old), nodes['old-node']),
    new: programOf(resolve(other), nodes['new-node']),
  };
  const against = benchOptions.includes('--against') ? [] : ['--against', 'none'];
  const measured = [];
  for (let i = 0; i < Number(rounds); i++) {
    const round = {};
    for (const side of i % 2 === 0 ? ['old', 'new'] : ['new', 'old']) {
      const folder = join(cache, side);
      mkdirSync(folder, { recursive: true });
      const given = benchOptions.map((word) => word.replaceAll('{side}', side));
      const args = ['bench', benchCase, ...given, ...against, '--cache', folder, '--json'];
      process.stderr.write(`Round ${i + 1} of ${rounds}, ${side}: ${[...programs[side], ...args].join(' ')}\n`);
      round[side] = await recordsOf([...programs[side], ...args]);
    }
    measured.push(round);
  }
  const compared = compare(benchCase, measured);
  if (out !== undefined) {
    writeFileSync(out, `${JSON.stringify({ command: words, compared, rounds: measured }, null, 1)}\n`);
  }
  process.stdout.write(`${comparisonTable(compared)}\n`);
}

/** The command that starts a checkout's `trawl`. Old versions have no bin/trawl. */
function programOf(checkout, node) {
  const launcher = join(checkout, 'bin', 'trawl');
  if (node === undefined && existsSync(launcher)) return [launcher];
  return [node ?? process.execPath, join(checkout, 'dist', 'cli', 'trawl.js')];
}

/** The records that a command prints as JSON. Rejects if it fails. */
async function recordsOf([command, ...args]) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const chunks = [];
  child.stdout.on('data', (chunk) => chunks.push(chunk));
  const code = await new Promise((done, reject) => {
    child.on('error', reject);
    child.on('close', done);
  });
  if (code !== 0) throw new Error(`${[command, ...args].join(' ')} ended with exit code ${code}.`);
  return JSON.parse(Buffer.concat(chunks).toString());
}

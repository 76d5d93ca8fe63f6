// Makes a checkout ready: packages installed, sources compiled. Does only what is not done yet. Plain JavaScript with
// nothing but Node's own modules, because it runs before anything is installed.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { buildNative, NATIVE_MISSING, nativeIsCurrent } from './build-native.mjs';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const INSTALL_STAMP = join(root, 'node_modules', '.trawl-setup');
const BUILD_STAMP = join(root, 'dist', '.trawl-build');
const SOURCE_FOLDERS = [
  'src',
  'hub',
  'checkpoint',
  'corpus',
  'prepare',
  'embeddings',
  'indexer',
  'export',
  'evaluation',
  'cli',
  'bench',
  'test',
];

export async function setup() {
  checkNode();
  await installPackages();
  await buildEngine();
  await compile();
}

function checkNode() {
  const major = Number(process.versions.node.split('.')[0]);
  if (major < 20) fail(`Node.js ${process.version} is too old: version 20 or newer is needed.`);
}

async function installPackages() {
  const wanted = digest([readFileSync(join(root, 'package-lock.json')), process.versions.modules, process.arch]);
  if (readText(INSTALL_STAMP) === wanted) return;
  if (isInstalled()) {
    writeFileSync(INSTALL_STAMP, wanted);
    return;
  }
  const started = announce('Installing packages (about two minutes: SQLite is compiled)');
  // Binaries are compiled rather than fetched: only the npm registry is needed, and the lock file covers every byte.
  const env = { ...process.env, npm_config_build_from_source: 'true', ...headersOfNode() };
  const npm = process.env.npm_execpath;
  const [command, args] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []];
  await run(command, [...args, 'ci', '--no-audit', '--no-fund'], {
    env,
    onFailure:
      'npm ci failed. Needed are the npm registry, a C++ compiler, make and Python 3 (Debian: apt-get install g++ make python3).',
  });
  writeFileSync(INSTALL_STAMP, wanted);
  done(started);
}

/** Whether someone ran `npm install` before us: every package of the lock file, and SQLite for this very Node. */
function isInstalled() {
  const installed = readText(join(root, 'node_modules', '.package-lock.json'));
  if (installed === undefined) return false;
  const found = JSON.parse(installed).packages;
  const locked = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  for (const [path, entry] of Object.entries(locked)) {
    if (path !== '' && isForThisMachine(entry) && found[path]?.version !== entry.version) return false;
  }
  const open = "new (require('better-sqlite3'))(':memory:').close()";
  return spawnSync(process.execPath, ['-e', open], { cwd: root, stdio: 'ignore' }).status === 0;
}

function isForThisMachine({ os, cpu, libc }) {
  const fits = (names, own) => names === undefined || names.includes(own);
  return fits(os, process.platform) && fits(cpu, process.arch) && libc?.[0] !== 'musl';
}

/** node-gyp downloads Node's headers unless it is told where they are installed. */
function headersOfNode() {
  if (process.env.npm_config_nodedir !== undefined) return {};
  const prefix = dirname(dirname(process.execPath));
  return existsSync(join(prefix, 'include', 'node', 'node_api.h')) ? { npm_config_nodedir: prefix } : {};
}

async function buildEngine() {
  if (nativeIsCurrent()) return;
  const started = announce('Building the native engine');
  const failure = await buildNative();
  done(started);
  if (failure !== undefined) process.stderr.write(`${failure}\n${NATIVE_MISSING}\n`);
}

async function compile() {
  const sources = SOURCE_FOLDERS.flatMap((folder) => filesBelow(join(root, folder), '.ts')).sort();
  const inputs = ['tsconfig.json', 'package-lock.json'].map((name) => join(root, name));
  const wanted = digest([...inputs, ...sources].flatMap((file) => [relative(root, file), readFileSync(file)]));
  if (readText(BUILD_STAMP) === wanted) return;
  const started = announce('Compiling');
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  await run(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc')], {
    onFailure: 'The sources do not compile.',
  });
  // npx and `npm install -g` set this bit once, on a file that the next build replaces.
  chmodSync(join(root, 'dist', 'cli', 'trawl.js'), 0o755);
  mkdirSync(dirname(BUILD_STAMP), { recursive: true });
  writeFileSync(BUILD_STAMP, wanted);
  done(started);
}

/** Runs a command in the root; its output is shown only when it fails. */
function run(command, args, { env = process.env, onFailure }) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const output = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', (chunk) => output.push(chunk));
    child.on('error', (error) => fail(`${onFailure} (${error.message})`));
    child.on('close', (code) => {
      if (code === 0) resolve();
      else fail(`\n${withoutNoise(Buffer.concat(output).toString())}\n${onFailure}`);
    });
  });
}

/** npm's remarks on settings that are meant for others. */
function withoutNoise(output) {
  return output.replaceAll(/^npm (warn Unknown|notice).*\n/gm, '');
}

export function filesBelow(folder, ending) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesBelow(path, ending);
    return entry.name.endsWith(ending) ? [path] : [];
  });
}

function digest(parts) {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(String(part.length)).update(' ').update(part);
  return hash.digest('hex');
}

function readText(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

let ticking;

/** Says what is being done; on a terminal a dot every five seconds shows that it goes on. */
function announce(doing) {
  process.stderr.write(`${doing} ...`);
  if (process.stderr.isTTY) ticking = setInterval(() => process.stderr.write('.'), 5000);
  return performance.now();
}

function done(started) {
  clearInterval(ticking);
  process.stderr.write(` done in ${((performance.now() - started) / 1000).toFixed(1)} s\n`);
}

export function fail(message) {
  clearInterval(ticking);
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) await setup();

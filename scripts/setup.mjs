// Installs packages and compiles the sources of a checkout, if needed. Plain JavaScript that imports only Node's own modules,
// because it runs before anything is installed.
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  buildNative,
  compileNativeCore,
  compileNativeEntries,
  NATIVE_MISSING,
  nativeIsCurrent,
} from './build-native.mjs';
import { bundle } from './bundle.mjs';
import { joinPackages } from './join-packages.mjs';
import { oneAtATime } from './one-at-a-time.mjs';
import { announce, done, fail, filesBelow, isRunning, root, runNpm } from './steps.mjs';
import { isSupported, NEEDED } from './supported-node.mjs';
import { translate } from './typescript.mjs';

export { fail, filesBelow, root };

const INSTALL_STAMP = join(root, 'node_modules', '.trawl-setup');
const BUILD_STAMP = join(root, 'dist', '.trawl-build');
const TSCONFIG = join(root, 'tsconfig.json');

/** `development`: also what tests and the linter need, beyond what running needs. */
export async function setup({ development = true } = {}) {
  checkNode();
  const sources = digestOfSources();
  const core = compileNativeCore();
  const translated = translateSources(sources);
  await installPackages({ development });
  await build(sources, Promise.all([core, compileNativeEntries()]), translated);
}

/** Exits if this Node.js is too old. The message has the command that finds or installs a newer one. */
function checkNode() {
  if (isSupported(process.versions.node)) return;
  const words = process.argv.slice(1).map((word) => (word.startsWith(root) ? relative(root, word) : word));
  fail(
    `Node.js ${process.version} (${process.execPath}) is too old: Trawl needs ${NEEDED}. This finds or installs a newer one:\n` +
      `  cd ${root} && sh scripts/run ${words.join(' ')}`,
  );
}

export async function installPackages({ development }) {
  const lock = digest([readFileSync(join(root, 'package-lock.json')), process.platform, process.arch]);
  const [all, program] = [`${lock} all`, `${lock} program`];
  const isStamped = () => [all, ...(development ? [] : [program])].includes(readText(INSTALL_STAMP));
  if (isStamped()) return;
  const release = await oneAtATime(join(root, '.packages.lock'));
  // Another set-up may have installed them meanwhile, or the user with `npm install`.
  if (!isStamped() && !isInstalled({ development })) {
    const started = announce(development ? 'Installing packages' : 'Installing packages to run');
    await install({ development });
    done(started);
  }
  writeFileSync(INSTALL_STAMP, isInstalled({ development: true }) ? all : program);
  release();
}

/** No package needs its install scripts: the packages contain their binaries, so the lock file covers every byte. */
const NPM_OPTIONS = ['--ignore-scripts', '--no-audit', '--no-fund'];

async function install({ development }) {
  const onFailure = 'npm could not install the packages. Check that the npm registry can be reached.';
  if (development && isInstalled({ development: false })) {
    // Adds to what an earlier set-up installed. `npm ci` would first remove that, also from under a running server.
    await runNpm(['install', '--no-save', ...NPM_OPTIONS], { onFailure });
    if (isInstalled({ development })) return;
  }
  await runNpm(['ci', ...(development ? [] : ['--omit=dev']), ...NPM_OPTIONS], { onFailure });
}

/** Whether every package of the lock file is installed, by an earlier `npm install` for example. */
function isInstalled({ development }) {
  const installed = readText(join(root, 'node_modules', '.package-lock.json'));
  if (installed === undefined) return false;
  const found = JSON.parse(installed).packages;
  const locked = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  return Object.entries(locked).every(([path, entry]) => {
    if (path === '' || (entry.dev && !development)) return true;
    // npm leaves out packages for other machines, and what only these need.
    if (!isForThisMachine(entry) || (entry.optional && entry.os === undefined && entry.cpu === undefined)) return true;
    return found[path]?.version === entry.version;
  });
}

function isForThisMachine({ os, cpu, libc }) {
  const fits = (names, own) => names === undefined || names.includes(own);
  return fits(os, process.platform) && fits(cpu, process.arch) && libc?.[0] !== 'musl';
}

/** Ends what began while packages were installed: links the native engine, and bundles the translated sources. */
async function build(sources, compiled, translated) {
  const steps = [];
  if (!nativeIsCurrent()) steps.push('Building the native engine');
  if (readText(BUILD_STAMP) !== sources) steps.push('Compiling');
  if (steps.length === 0) return;
  const started = announce(steps.join(', '));
  const [failure] = await Promise.all([compiled.then(buildNative), compile(sources, translated)]);
  done(started);
  if (failure !== undefined) process.stderr.write(`${failure}\n${NATIVE_MISSING}\n`);
}

function digestOfSources() {
  const { include } = JSON.parse(readFileSync(TSCONFIG, 'utf8'));
  const sources = include.flatMap((folder) => filesBelow(join(root, folder), '.ts')).sort();
  const compilers = ['build-tools.mjs', 'bundle.mjs', 'join-packages.mjs', 'typescript.mjs', 'steps.mjs'];
  const scripts = compilers.map((name) => join(root, 'scripts', name));
  const inputs = [TSCONFIG, join(root, 'package-lock.json'), ...scripts, ...sources];
  return digest(inputs.flatMap((file) => [relative(root, file), readFileSync(file)]));
}

/** Translates the sources if they changed. @returns the folder with the result. */
async function translateSources(sources) {
  if (readText(BUILD_STAMP) === sources) return undefined;
  // In another folder first: another set-up or a running program may be reading `dist`.
  const made = join(root, `dist.${process.pid}`);
  removeLeftovers();
  await translate(made);
  return made;
}

async function compile(sources, translated) {
  const made = await translated;
  if (made === undefined) return;
  await bundle(made);
  await joinPackages(made);
  // npx and `npm install -g` set this bit only once, and each build replaces the file.
  chmodSync(join(made, 'cli', 'trawl.js'), 0o755);
  // In the same folder, so that `dist` never has the stamp of other sources.
  writeFileSync(join(made, basename(BUILD_STAMP)), sources);
  replaceFolder(made, join(root, 'dist'));
}

/** Removes the folders of killed set-ups. */
function removeLeftovers() {
  for (const name of readdirSync(root)) {
    const [, pid] = /^dist\.(?:old\.)?(\d+)$/.exec(name) ?? [];
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(root, name), { recursive: true, force: true });
  }
}

/** Replaces `folder` by `made`, unless another set-up has just done so, with a folder made from the same sources. */
function replaceFolder(made, folder) {
  const old = `${folder}.old.${process.pid}`;
  try {
    if (existsSync(folder)) renameSync(folder, old);
  } catch (error) {
    // The other set-up has just moved it.
    if (error.code !== 'ENOENT') throw error;
  }
  try {
    renameSync(made, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
    rmSync(made, { recursive: true, force: true });
  }
  rmSync(old, { recursive: true, force: true });
}

function digest(parts) {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(String(part.length)).update(' ').update(part);
  return hash.digest('hex');
}

function readText(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  await setup({ development: false });

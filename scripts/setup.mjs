// Installs packages and compiles the sources of a checkout, if needed. Plain JavaScript that imports only Node's own modules,
// because it runs before anything is installed.
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildNative, compileNativeCore, NATIVE_MISSING, nativeIsCurrent } from './build-native.mjs';
import { bundle } from './bundle.mjs';
import { announce, done, fail, filesBelow, isRunning, root, runNpm } from './steps.mjs';
import { isSupported, NEEDED } from './supported-node.mjs';
import { translate } from './typescript.mjs';

export { fail, filesBelow, root };

const INSTALL_STAMP = join(root, 'node_modules', '.trawl-setup');
const BUILD_STAMP = join(root, 'dist', '.trawl-build');
const TSCONFIG = join(root, 'tsconfig.json');

export async function setup() {
  checkNode();
  const core = compileNativeCore();
  await installPackages();
  await build(core);
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

async function installPackages() {
  const wanted = digest([readFileSync(join(root, 'package-lock.json')), process.platform, process.arch]);
  if (readText(INSTALL_STAMP) === wanted) return;
  if (isInstalled()) {
    writeFileSync(INSTALL_STAMP, wanted);
    return;
  }
  const started = announce('Installing packages');
  // No package needs its install scripts: the packages contain their binaries, so the lock file covers every byte.
  await runNpm(['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    onFailure: 'npm ci failed. Check that the npm registry can be reached.',
  });
  writeFileSync(INSTALL_STAMP, wanted);
  done(started);
}

/** Whether every package of the lock file is installed, by an earlier `npm install` for example. */
function isInstalled() {
  const installed = readText(join(root, 'node_modules', '.package-lock.json'));
  if (installed === undefined) return false;
  const found = JSON.parse(installed).packages;
  const locked = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  return Object.entries(locked).every(
    ([path, entry]) => path === '' || !isForThisMachine(entry) || found[path]?.version === entry.version,
  );
}

function isForThisMachine({ os, cpu, libc }) {
  const fits = (names, own) => names === undefined || names.includes(own);
  return fits(os, process.platform) && fits(cpu, process.arch) && libc?.[0] !== 'musl';
}

/** Builds the native engine and compiles the sources in parallel. `core`: the promise of `compileNativeCore`. */
async function build(core) {
  const sources = digestOfSources();
  const steps = [];
  if (!nativeIsCurrent()) steps.push('Building the native engine');
  if (readText(BUILD_STAMP) !== sources) steps.push('Compiling');
  if (steps.length === 0) return;
  const started = announce(steps.join(', '));
  const [failure] = await Promise.all([core.then(buildNative), compile(sources)]);
  done(started);
  if (failure !== undefined) process.stderr.write(`${failure}\n${NATIVE_MISSING}\n`);
}

function digestOfSources() {
  const { include } = JSON.parse(readFileSync(TSCONFIG, 'utf8'));
  const sources = include.flatMap((folder) => filesBelow(join(root, folder), '.ts')).sort();
  const compilers = ['bundle.mjs', 'typescript.mjs', 'steps.mjs'].map((name) => join(root, 'scripts', name));
  const inputs = [TSCONFIG, join(root, 'package-lock.json'), ...compilers, ...sources];
  return digest(inputs.flatMap((file) => [relative(root, file), readFileSync(file)]));
}

async function compile(sources) {
  if (readText(BUILD_STAMP) === sources) return;
  // In another folder first: another set-up or a running program may be reading `dist`.
  const made = join(root, `dist.${process.pid}`);
  removeLeftovers();
  await translate(made);
  await bundle(made);
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

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) await setup();

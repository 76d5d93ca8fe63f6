// Builds the native engine with make, if its sources changed. npm runs this as the package's install script: in an installed
// package it does nothing if a prebuilt binary fits (src/engine/native/prebuilt-addon.ts). A failure is only a warning, because without
// a compiler the program searches in TypeScript.
//
// This does not use node-gyp, which compiles against the headers of one Node.js version; npm's setting `nodedir` or the system
// may name those of another version. Node-API is the same in every version, and its headers are an npm package.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { outputOfFailure, root } from './steps.mjs';

const native = join(root, 'native');
const BINARY = join(native, 'build', 'addon', 'trawl.node');
const STAMP = join(native, 'build', '.trawl-native');

/** Whether the binary exists and was made from the current sources for this machine. */
export function nativeIsCurrent() {
  return existsSync(BINARY) && existsSync(STAMP) && readFileSync(STAMP, 'utf8') === digestOfSources();
}

/** Compiles the sources that need no package, while npm installs packages. `buildNative` reports a failure. */
export async function compileNativeCore() {
  // npm goes first: the entries wait for it.
  if (!nativeIsCurrent()) await make(['addon-core'], ['nice', 'make']);
}

/** Compiles the addon's entries, beside the other sources. `buildNative` reports a failure. */
export async function compileNativeEntries() {
  if (!nativeIsCurrent()) await make(['addon-entries', nodeApi()]);
}

/** Resolves to undefined if the engine is built, else to the output of the failed build; then no binary is left. */
export async function buildNative() {
  if (nativeIsCurrent()) return undefined;
  const sources = digestOfSources();
  const output = await makeAddon([]);
  if (output === undefined) writeFileSync(STAMP, sources);
  // The binary of earlier sources would be loaded in its place, and search otherwise than the program expects.
  else for (const file of [STAMP, BINARY]) rmSync(file, { force: true });
  return output;
}

/** Arguments of make for targets that compile the addon's entries. */
export function makeAddonArguments() {
  return [nodeApi()];
}

/** Makes the addon with these variables of the Makefile. Resolves to undefined, or to the output of the failed build. */
export function makeAddon(variables) {
  return make(['addon', nodeApi(), ...variables]);
}

/** The variable with the folders of the headers. */
function nodeApi() {
  const require = createRequire(import.meta.url);
  const headers = [require('node-api-headers').include_dir, dirname(require.resolve('node-addon-api/package.json'))];
  // Relative, because make does not support paths with a space.
  return `NODE_API=${headers.map((folder) => relative(native, folder)).join(' ')}`;
}

function make(args, [command, ...first] = ['make']) {
  const jobs = `--jobs=${availableParallelism()}`;
  return outputOfFailure(command, [...first, jobs, ...args], { cwd: native, env: process.env });
}

/** A digest of the engine's sources and of the machine that they are compiled for. */
export function digestOfSources(machine = `${process.platform} ${process.arch}`) {
  const hash = createHash('sha256').update(machine);
  for (const file of sources(native)) hash.update(relative(native, file)).update(readFileSync(file));
  return hash.digest('hex');
}

/** The folders of native/ whose files become part of the addon. */
const SOURCE_FOLDERS = ['addon', 'generated', 'include', 'src'];

function sources(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return folder !== native || SOURCE_FOLDERS.includes(entry.name) ? sources(path) : [];
      return /\.(cpp|hpp|ptx)$|^Makefile$/.test(entry.name) ? [path] : [];
    })
    .sort();
}

export const NATIVE_MISSING =
  'The native engine could not be built. Searches will run in TypeScript, with the same results but 20 to 1,000 times slower. ' +
  'Install a C++ compiler and make (Debian: apt-get install g++ make) and run npm run build, or npm rebuild in an installed package.';

/** Whether this is an installed package in which a prebuilt binary, or one that was compiled before, can be loaded. */
async function isUsable() {
  // In a checkout, the binary has to be that of the present sources.
  if (existsSync(join(root, 'tsconfig.json'))) return false;
  const { loadAddon } = await import('../dist/src/engine/native/load-addon.js');
  return loadAddon().ok;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href && !(await isUsable())) {
  const failure = await buildNative();
  if (failure !== undefined) process.stderr.write(`${failure}\n${NATIVE_MISSING}\n`);
}

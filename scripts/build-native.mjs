// Builds the native engine with node-gyp, if its sources changed. Without a compiler the program still works, with the
// search in TypeScript, so a failure is a warning here: npm runs this as the package's install script.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const native = join(root, 'native');
const BINARY = join(native, 'build', 'Release', 'trawl.node');
const STAMP = join(native, 'build', '.trawl-native');

/** Whether the binary is there and was made from these sources for this Node. */
export function nativeIsCurrent() {
  return existsSync(BINARY) && existsSync(STAMP) && readFileSync(STAMP, 'utf8') === digestOfSources();
}

/** Resolves to undefined when the engine was built, else to the output of the failed build. */
export async function buildNative() {
  const nodeGyp = findNodeGyp();
  const [command, first] = nodeGyp === undefined ? ['node-gyp', []] : [process.execPath, [nodeGyp]];
  const args = [...first, 'rebuild', '--jobs', String(availableParallelism()), ...headersOfNode()];
  const output = await run(command, args);
  if (output === undefined) writeFileSync(STAMP, digestOfSources());
  return output;
}

/** npm brings a node-gyp along and says where it is to the scripts it runs. */
function findNodeGyp() {
  const beside = join(dirname(dirname(process.execPath)), 'lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js');
  return process.env.npm_config_node_gyp ?? (existsSync(beside) ? beside : undefined);
}

/** node-gyp downloads Node's headers unless it is told where they are installed. */
export function headersOfNode() {
  const prefix = dirname(dirname(process.execPath));
  return existsSync(join(prefix, 'include', 'node', 'node_api.h')) ? [`--nodedir=${prefix}`] : [];
}

function digestOfSources() {
  const hash = createHash('sha256').update(`${process.versions.modules} ${process.platform} ${process.arch}`);
  for (const file of sources(native)) hash.update(relative(native, file)).update(readFileSync(file));
  return hash.digest('hex');
}

function sources(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return ['addon', 'include', 'src', 'trawl'].includes(entry.name) ? sources(path) : [];
      return /\.(cpp|hpp|gyp)$/.test(entry.name) ? [path] : [];
    })
    .sort();
}

function run(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: native, stdio: ['ignore', 'pipe', 'pipe'] });
    const output = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', (chunk) => output.push(chunk));
    child.on('error', (error) => resolve(`${command}: ${error.message}`));
    child.on('close', (code) => resolve(code === 0 ? undefined : Buffer.concat(output).toString()));
  });
}

export const NATIVE_MISSING =
  'The native engine could not be built: searches will run in TypeScript, with the same answers but 20 to 1,000 times slower. ' +
  'Install a C++ compiler, make and Python 3 (Debian: apt-get install g++ make python3) and run npm run setup.';

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const failure = nativeIsCurrent() ? undefined : await buildNative();
  if (failure !== undefined) process.stderr.write(`${failure}\n${NATIVE_MISSING}\n`);
}

// Which packages an installation of Trawl has. The lock file alone does not say it: it also lists what only the checkout installs, and
// what bundled packages need but the bundle does not contain.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUNDLED as IN_BUNDLE } from './bundle.mjs';
import { root } from './steps.mjs';

/** Packages that are part of the npm package itself, without what only their install scripts need. */
export const PACKED = ['onnxruntime-node', 'onnxruntime-common'];

/**
 * The packages of this checkout's package-lock.json that an installation has, by their paths, such as `node_modules/fastify`: those that
 * npm installs, and those of which dist/bundle has a copy.
 */
export function installedPackages() {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const paths = new Set([...installedByNpm(packages), ...copiedPackages(packages)]);
  return Object.fromEntries([...paths].sort().map((path) => [path, packages[path]]));
}

/** The packages that the published package.json names, with all that they need. */
function installedByNpm(packages) {
  const found = new Set();
  const direct = Object.keys(packages[''].dependencies).filter((name) => !IN_BUNDLE.includes(name));
  const waiting = direct.map((name) => ['', name]);
  while (waiting.length > 0) {
    const [from, name] = waiting.pop();
    const path = placeOf(packages, from, name);
    if (path === undefined || found.has(path)) continue;
    found.add(path);
    const needed = neededBy(packages[path]).filter((other) => !PACKED.includes(name) || PACKED.includes(other));
    for (const other of needed) waiting.push([path, other]);
  }
  return found;
}

function neededBy({ dependencies, optionalDependencies, peerDependencies = {}, peerDependenciesMeta = {} }) {
  const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true);
  return [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers];
}

/** Where Node.js finds the package `name` from the package at `from`; undefined if it is not there. */
function placeOf(packages, from, name) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const path = join(folder, 'node_modules', name);
    if (path in packages) return path;
    if (folder === '') return undefined;
  }
}

/** The packages that the bundle's licences name: each with its version in a line of its own before its licence. */
function copiedPackages(packages) {
  const licences = readFileSync(join(root, 'dist', 'bundle', 'LICENSES.txt'), 'utf8');
  const lines = [...licences.matchAll(/^((?:@[\w.-]+\/)?[\w.-]+) (\d+\.\d+\.\d+\S*)$/gm)];
  return lines
    .filter(([, name, version]) => packages[`node_modules/${name}`]?.version === version)
    .map(([, name]) => `node_modules/${name}`);
}

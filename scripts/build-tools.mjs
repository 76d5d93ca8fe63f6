// The TypeScript compiler and the bundler: the development packages that every set-up needs. They are installed into the user's cache
// folder, so that the sources are translated while npm installs the program's packages; versions and checksums are those of
// package-lock.json.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { cachePath, installOnce } from './cached-packages.mjs';
import { root } from './steps.mjs';

const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
const LIST = listOf(['esbuild', 'typescript']);
export const BUILD_TOOLS = `build-tools-${createHash('sha256').update(LIST['package-lock.json']).digest('hex').slice(0, 12)}`;

let installed;

/** Installs both, if needed. @returns the path of the compiler's program, and the bundler's function `build`. */
export async function buildTools() {
  const folder = cachePath(BUILD_TOOLS);
  installed ??= installOnce(folder, LIST, {
    onFailure: 'npm could not install the TypeScript compiler. Check that the npm registry can be reached.',
  });
  await installed;
  return {
    tsc: join(folder, 'node_modules', 'typescript', 'bin', 'tsc'),
    build: (options) => createRequire(join(folder, 'package.json'))('esbuild').build(options),
  };
}

/** The names of these packages and of all that they need, by the lock file. */
export function withNeeded(names) {
  const found = new Set(names);
  for (const name of found)
    for (const [path, { dependencies, optionalDependencies, peerDependencies }] of Object.entries(packages))
      if (path.endsWith(`node_modules/${name}`))
        for (const needed of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }))
          found.add(needed);
  return found;
}

/** package.json and package-lock.json of a folder that has only these packages and what they need. */
function listOf(names) {
  const own = { name: 'trawl-build-tools', dependencies: {} };
  for (const name of names) own.dependencies[name] = packages[`node_modules/${name}`].version;
  const needed = [...withNeeded(names)].map((name) => `node_modules/${name}`).sort();
  const entries = needed.map((path) => [path, { ...packages[path], dev: undefined }]);
  const lock = {
    name: own.name,
    lockfileVersion: 3,
    requires: true,
    packages: { '': own, ...Object.fromEntries(entries) },
  };
  return { 'package.json': JSON.stringify(own), 'package-lock.json': JSON.stringify(lock) };
}

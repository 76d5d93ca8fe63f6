// The TypeScript compiler and the bundler. They have a lock file of their own (scripts/build-tools/) and are installed into the
// user's cache folder, so that the sources are translated while npm installs the program's packages.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { cacheName, cachePath, installOnce } from './cached-packages.mjs';
import { root } from './steps.mjs';

const LIST = join(root, 'scripts', 'build-tools');
export const BUILD_TOOLS = cacheName('build-tools', LIST);

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

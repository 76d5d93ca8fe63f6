// Calls of the TypeScript compiler. The set-up only translates, which takes a tenth of the time; `npm test` and `npm run typecheck`
// check the types.
import { join } from 'node:path';
import { buildTools } from './build-tools.mjs';
import { outputOfFailure, root, run } from './steps.mjs';

/** What the last check found, so that the next one checks only what a change concerns. */
const CHECKED = join(root, 'node_modules', '.cache', 'trawl', 'types.tsbuildinfo');

/** Writes JavaScript and source maps into the folder. Needs no package with types. Exits if a file has a syntax error. */
export async function translate(folder) {
  const { tsc } = await buildTools();
  const args = [tsc, '--noCheck', '--noEmitOnError', '--types', '', '--declaration', 'false', '--outDir', folder];
  return run(process.execPath, args, { onFailure: 'The sources do not compile.' });
}

/** Adds the declarations (.d.ts), for the package. Exits if a type is wrong. */
export async function writeDeclarations(folder) {
  const { tsc } = await buildTools();
  const args = [tsc, '--noEmitOnError', '--emitDeclarationOnly', '--outDir', folder];
  return run(process.execPath, args, { onFailure: 'The sources do not compile.' });
}

/** Resolves to undefined if all types are right, else to the compiler's errors. */
export async function typeErrors() {
  const { tsc } = await buildTools();
  const args = [tsc, '--noEmit', '--incremental', '--tsBuildInfoFile', CHECKED];
  return outputOfFailure(process.execPath, args, { cwd: root, env: process.env });
}

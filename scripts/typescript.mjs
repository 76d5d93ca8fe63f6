// Calls of the TypeScript compiler. The set-up only translates, which takes a tenth of the time; `npm test` checks the types.
import { join } from 'node:path';
import { outputOfFailure, root, run } from './steps.mjs';

const TSC = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
/** What the last check found, so that the next one checks only what a change concerns. */
const CHECKED = join(root, 'node_modules', '.cache', 'trawl', 'types.tsbuildinfo');

/** Writes JavaScript and source maps into the folder. Exits if a file has a syntax error. */
export function translate(folder) {
  const args = [TSC, '--noCheck', '--noEmitOnError', '--declaration', 'false', '--outDir', folder];
  return run(process.execPath, args, { onFailure: 'The sources do not compile.' });
}

/** Adds the declarations (.d.ts), for the package. Exits if a type is wrong. */
export function writeDeclarations(folder) {
  const args = [TSC, '--noEmitOnError', '--emitDeclarationOnly', '--outDir', folder];
  return run(process.execPath, args, { onFailure: 'The sources do not compile.' });
}

/** Resolves to undefined if all types are right, else to the compiler's errors. */
export function typeErrors() {
  const args = [TSC, '--noEmit', '--incremental', '--tsBuildInfoFile', CHECKED];
  return outputOfFailure(process.execPath, args, { cwd: root, env: process.env });
}

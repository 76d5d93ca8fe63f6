// Checks the imports of the product against .dependency-cruiser.cjs: the order of the folders, circles, the doors of packages.
import { join } from 'node:path';
import { outputOfFailure, root } from './steps.mjs';

const FOLDERS = ['src', 'corpus', 'indexer', 'evaluation', 'training', 'bench', 'cli'];

/** Resolves to undefined if every import is allowed, else to what is wrong. */
export function importErrors() {
  const program = join(root, 'node_modules', 'dependency-cruiser', 'bin', 'dependency-cruiser.mjs');
  return outputOfFailure(process.execPath, [program, ...FOLDERS], { cwd: root, env: process.env });
}

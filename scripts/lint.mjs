// `npm run lint`: formats and lints, fixes what it can, and checks the imports. `npm run lint -- FILES`: formats and lints only these.
// Also formats the engine's sources, if `npm run check -- native` has installed clang-format.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { clangTool, engineSources } from './clang-tools.mjs';
import { importErrors } from './imports.mjs';
import { installPackages, root } from './setup.mjs';

await installPackages({ development: true });
const words = process.argv.slice(2);
const clangFormat = clangTool('clang-format');
if (words.length === 0 && clangFormat !== undefined) run(clangFormat, ['-i', ...engineSources()]);
const biome = join(root, 'node_modules', '@biomejs', 'biome', 'bin', 'biome');
run(process.execPath, [biome, 'check', '--write', ...(words.length > 0 ? words : ['.'])]);
const imports = words.length > 0 ? undefined : await importErrors();
if (imports !== undefined) {
  process.stderr.write(`${imports}\n`);
  process.exitCode ||= 1;
}

/** Runs a tool. The exit code of the first one that fails is the exit code of this process; 1 if it does not start or is killed. */
function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (error !== undefined) process.stderr.write(`${error.message}\n`);
  process.exitCode ||= status ?? 1;
}

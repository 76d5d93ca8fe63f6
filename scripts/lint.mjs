// `npm run lint`: formats and lints, fixes what it can, and checks the imports. `npm run lint -- FILES`: formats and lints only these.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { importErrors } from './imports.mjs';
import { installPackages, root } from './setup.mjs';

await installPackages({ development: true });
const biome = join(root, 'node_modules', '@biomejs', 'biome', 'bin', 'biome');
const words = process.argv.slice(2);
const args = [biome, 'check', '--write', ...(words.length > 0 ? words : ['.'])];
spawn(process.execPath, args, { cwd: root, stdio: 'inherit' }).on('close', async (code) => {
  process.exitCode = code ?? 1;
  const imports = words.length > 0 ? undefined : await importErrors();
  if (imports === undefined) return;
  process.stderr.write(`${imports}\n`);
  process.exitCode = 1;
});

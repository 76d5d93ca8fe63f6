// `npm run lint`: formats and lints, and fixes what it can. `npm run lint -- FILES`: only these.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { installPackages, root } from './setup.mjs';

await installPackages({ development: true });
const biome = join(root, 'node_modules', '@biomejs', 'biome', 'bin', 'biome');
const words = process.argv.slice(2);
const args = [biome, 'check', '--write', ...(words.length > 0 ? words : ['.'])];
spawn(process.execPath, args, { cwd: root, stdio: 'inherit' }).on('close', (code) => {
  process.exitCode = code ?? 1;
});

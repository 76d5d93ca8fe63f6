// `npm run watch`: compiles the sources again whenever one changes, and prints the errors of their types.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, watch } from 'node:fs';
import { join } from 'node:path';
import { installPackages, root } from './setup.mjs';
import { typeErrors } from './typescript.mjs';

await installPackages({ development: true });
let changed = () => {};
const { include } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
for (const folder of include) watch(join(root, folder), { recursive: true }, () => changed());
for (;;) {
  const change = new Promise((resolve) => {
    changed = resolve;
  });
  // A process of its own, because a syntax error ends it.
  const build = spawn(process.execPath, [join(root, 'scripts', 'setup.mjs')], { stdio: 'inherit' });
  const [code] = await once(build, 'close');
  if (code === 0) process.stderr.write(`${(await typeErrors()) ?? 'The types are right.'}\n`);
  process.stderr.write('Waiting for changes ...\n');
  await change;
}

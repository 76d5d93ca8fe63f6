// `npm test`: set-up, lint, every test but those against Python peers, which `npm run test:peers` runs and installs.
// `npm test -- corpus http/page` runs the test files whose path contains a word.
import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { filesBelow, root, setup } from './setup.mjs';

const words = process.argv.slice(2);
await setup();

const files = filesBelow(join(root, 'dist', 'test'), '.test.js')
  .filter((file) => {
    if (words.length === 0) return !file.endsWith('.peer.test.js');
    return words.some((word) => relative(root, file).includes(word));
  })
  .sort();
if (files.length === 0) {
  process.stderr.write(`No test file has ${words.join(' or ')} in its path.\n`);
  process.exit(1);
}
const lint = spawnSync(
  process.execPath,
  [join(root, 'node_modules', '@biomejs', 'biome', 'bin', 'biome'), 'check', '--error-on-warnings', '.'],
  {
    cwd: root,
    stdio: 'inherit',
  },
);
// Files at once: `node --test` leaves a core free, which on two cores is one file after the other. Not the command line's
// option, which the first versions of Node 20 have not.
let failed = lint.status !== 0;
const tests = run({ files, concurrency: availableParallelism() });
tests.on('test:fail', ({ todo }) => {
  if (todo === undefined || todo === false) failed = true;
});
const output = tests.compose(new spec());
output.on('end', () => {
  if (words.length === 0) process.stdout.write('Comparisons with Python peers: `npm run test:peers`.\n');
  if (lint.status !== 0)
    process.stderr.write('The linter found problems: see above the tests. `npm run lint` mends most of them.\n');
  process.exitCode = failed ? 1 : 0;
});
output.pipe(process.stdout);

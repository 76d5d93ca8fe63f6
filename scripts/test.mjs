// `npm test`: set-up, lint, every test. `npm test -- corpus http/page` runs the test files whose path contains a word.
import { spawnSync } from 'node:child_process';
import { join, relative } from 'node:path';
import { filesBelow, root, setup } from './setup.mjs';

const words = process.argv.slice(2);
await setup();

const files = filesBelow(join(root, 'dist', 'test'), '.test.js')
  .filter((file) => words.length === 0 || words.some((word) => relative(root, file).includes(word)))
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
// Node 20 takes no globs, so the files are named one by one.
const tests = spawnSync(process.execPath, ['--test', '--test-reporter=spec', ...files], {
  cwd: root,
  stdio: 'inherit',
});
if (lint.status !== 0)
  process.stderr.write('The linter found problems: see above the tests. `npm run lint` mends most of them.\n');
process.exitCode = lint.status === 0 ? (tests.status ?? 1) : 1;

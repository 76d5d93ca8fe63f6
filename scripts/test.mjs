// `npm test`: set-up, lint, types, and every test except the long ones and the comparisons with Python peers.
// `npm run test:long` (this script with --long): the long ones, in files named *.long.test.ts, and the tests with random inputs
// (test/helpers/runs.ts) with many runs.
// `npm test -- corpus http/page` runs the test files whose path contains a word, long ones too.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { filesBelow, root, setup } from './setup.mjs';
import { outputOfFailure } from './steps.mjs';
import { hasWord, longestFirst, TestFiles } from './test-files.mjs';
import { typeErrors } from './typescript.mjs';

/** Files that take long by the clock. */
const FIRST = [
  'server/elasticsearch/write',
  'server/elasticsearch/write-indexes',
  'cli/serve-command',
  'cli/serve-operations',
  'cli/endpoint',
  'cli/import-command',
  'indexer/lexical',
  'engine/vectors/flat-index',
].map((name) => join(root, 'dist', 'test', `${name}.test.js`));

const long = process.argv.includes('--long');
if (long) process.env.TRAWL_TEST_RUNS = 'many';
const words = process.argv.slice(2).filter((word) => word !== '--long');
await setup();

const chosen = filesBelow(join(root, 'dist', 'test'), '.test.js').filter((file) => {
  // Clusters of several processes: npm run test:cluster.
  if (file.endsWith('.cluster.test.js')) return false;
  const isLong = file.endsWith('.long.test.js');
  if (long && !isLong && !/helpers\/runs\.js['"]/.test(readFileSync(file, 'utf8'))) return false;
  if (words.length === 0) return (long || !isLong) && !file.endsWith('.peer.test.js');
  return hasWord(file, words);
});
const files = longestFirst(chosen, FIRST);
if (files.length === 0) {
  process.stderr.write(`No test file has ${words.join(' or ')} in its path.\n`);
  process.exit(1);
}
const biome = join(root, 'node_modules', '@biomejs', 'biome', 'bin', 'biome');
const checks = Promise.all([
  outputOfFailure(process.execPath, [biome, 'check', '--error-on-warnings', '.'], { cwd: root, env: process.env }),
  typeErrors(),
]);
// Each test file and each `trawl` that a test starts is a process of its own: Node.js keeps the compiled modules for the next
// one. Coverage needs modules that were compiled with it.
const compiled = mkdtempSync(join(tmpdir(), 'trawl-compiled-'));
if (process.env.NODE_V8_COVERAGE === undefined) process.env.NODE_COMPILE_CACHE ??= compiled;
// What several test files need is made once (test/helpers/shared-folder.ts).
const shared = mkdtempSync(join(tmpdir(), 'trawl-shared-'));
process.env.TRAWL_TEST_SHARED = shared;
process.on('exit', () => {
  for (const folder of [compiled, shared]) rmSync(folder, { recursive: true, force: true });
});

const tests = new TestFiles();
// Three times as many test files as cores at a time: a file that waits (for a server's start, a time limit, a disk) leaves its core to
// another. The soak test measures the memory of a server under load, so it has the machine for itself.
const isSoak = (file) => file.endsWith('soak.long.test.js');
await tests.run(
  files.filter((file) => !isSoak(file)),
  3 * availableParallelism(),
);
await tests.run(files.filter(isSoak), 1);
if (words.length === 0) {
  tests.printSlowest();
  if (!long)
    process.stdout.write(
      'Not run here: `npm run test:long`, `npm run test:peers` (the comparisons with Python peers) and `npm run test:cluster`.\n',
    );
}
const [lint, types] = await checks;
if (lint !== undefined)
  process.stderr.write(`${lint}\nThe linter found problems. \`npm run lint\` fixes most of them.\n`);
if (types !== undefined) process.stderr.write(`${types}\nThe types are wrong.\n`);
if (lint !== undefined || types !== undefined) tests.failed = true;
process.exitCode = tests.failed ? 1 : 0;

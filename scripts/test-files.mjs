// Chooses compiled test files and runs each as a process of its own.
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { isAbsolute, join, normalize, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fail, filesBelow, root } from './steps.mjs';

/** Tests that `npm test` leaves out, by the end of their files' names: `.long` (npm run check -- long), `.peer` (peers). */
const ENDINGS = /\.(?:long|peer)\.test\.js$/;

/**
 * The test files whose path contains one of the words, such as `http/page` or `test/server/routes.test.ts`. Without words, those that
 * `isChosen`. Exits if there are none.
 */
export function testFiles(words, isChosen = (file) => !ENDINGS.test(file)) {
  const parts = words.map((word) => normalize(isAbsolute(word) ? relative(root, word) : word).replace(/\.ts$/, '.js'));
  const files = filesBelow(join(root, 'dist', 'test'), '.test.js').filter((file) => {
    // Clusters of several processes: npm run check -- cluster.
    if (file.endsWith('.cluster.test.js')) return false;
    return words.length === 0 ? isChosen(file) : parts.some((part) => relative(root, file).includes(part));
  });
  if (files.length === 0) fail(`No test file has ${words.join(' or ')} in its path.`);
  return files;
}

/** The files with a test whose name the pattern fits; all of them if the names are made while the tests run. */
export function filesWithName(files, pattern) {
  const found = files.filter((file) => new RegExp(pattern).test(readFileSync(file, 'utf8')));
  return found.length > 0 ? found : files;
}

/**
 * Runs the files, by default three times as many at a time as there are cores: a file that waits (for a server's start, a time limit,
 * a disk) leaves its core to another. The largest files start first, because most of them take long. The exit code is 1 if a test fails.
 */
export async function runTests(files, { concurrency = 3 * availableParallelism(), name } = {}) {
  if (files.length === 0) return;
  const folders = ['compiled', 'shared'].map((purpose) => mkdtempSync(join(tmpdir(), `trawl-${purpose}-`)));
  // Each test file and each `trawl` that a test starts is a process of its own: Node.js keeps the compiled modules for the next one.
  // Coverage needs modules that were compiled with it.
  if (process.env.NODE_V8_COVERAGE === undefined) process.env.NODE_COMPILE_CACHE ??= folders[0];
  // What several test files need is made once (test/helpers/shared-folder.ts).
  process.env.TRAWL_TEST_SHARED = folders[1];
  process.on('exit', () => folders.forEach((folder) => void rmSync(folder, { recursive: true, force: true })));
  const largestFirst = files.map((file) => ({ file, size: statSync(file).size })).sort((a, b) => b.size - a.size);
  const tests = run({
    files: largestFirst.map(({ file }) => file),
    concurrency,
    ...(name === undefined ? {} : { testNamePatterns: new RegExp(name) }),
  });
  tests.on('test:fail', ({ todo }) => {
    if (todo === undefined || todo === false) process.exitCode = 1;
  });
  const output = tests.compose(new spec());
  output.pipe(process.stdout, { end: false });
  await once(output, 'end');
}

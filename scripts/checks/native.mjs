// The engine's own tests, also with the address sanitizer and mutations; `--long`: with large cases and the thread sanitizer.
import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { root } from '../steps.mjs';

const long = process.argv.includes('--long');
const [programs, ...tests] = long
  ? ['test-programs-long', 'test-odr', 'test', 'test-asan-ubsan', 'test-tsan', 'test-mutations']
  : ['test-programs', 'test-odr', 'test', 'test-asan-ubsan-small', 'test-mutations'];
for (const targets of [[programs], tests]) {
  const args = ['-C', join(root, 'native'), `--jobs=${availableParallelism()}`, ...targets];
  process.exitCode = spawnSync('make', args, { stdio: 'inherit' }).status ?? 1;
  if (process.exitCode !== 0) break;
}

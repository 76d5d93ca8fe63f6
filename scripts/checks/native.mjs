// The engine's own tests, also with the address sanitizer, mutants, fuzzing, clang-format and clang-tidy; `--long`: large cases and the
// thread sanitizer, too.
import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { testAddonMutants } from '../addon-mutants.mjs';
import { makeAddonArguments } from '../build-native.mjs';
import { clangTool, engineSources, installClangTools } from '../clang-tools.mjs';
import { fail, root, setup } from '../setup.mjs';

const long = process.argv.includes('--long');
const [programs, ...tests] = long
  ? ['test-programs-long', 'test-odr', 'test', 'test-asan-ubsan', 'test-tsan', 'test-mutations', 'fuzz-short']
  : ['test-programs', 'test-odr', 'test', 'test-asan-ubsan-small', 'test-mutations', 'fuzz-short'];
const native = join(root, 'native');

await setup();
const { installOnce } = await import('../../dist/bench/install-once.js');
const missing = await installClangTools(installOnce);
if (missing === undefined) {
  run(clangTool('clang-format'), ['--dry-run', '--Werror', ...engineSources()], 'npm run lint formats the files.');
} else
  process.stderr.write(
    `${missing}\nclang-format and clang-tidy could not be installed: the engine is not checked with them.\n`,
  );
make([programs]);
make(tests);
if (missing === undefined) make(['tidy', `CLANG_TIDY=${clangTool('clang-tidy')}`, ...makeAddonArguments()]);
if (!(await testAddonMutants(make))) process.exit(1);

function make(targets) {
  run('make', ['-C', native, `--jobs=${availableParallelism()}`, ...targets]);
}

function run(command, args, advice = '') {
  const { status } = spawnSync(command, args, { cwd: native, stdio: 'inherit' });
  if (status !== 0) fail(advice);
}

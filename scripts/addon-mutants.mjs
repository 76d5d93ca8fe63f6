// Runs tests of the addon with each mutant of it (native/test/mutants.txt): one of them has to fail.
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { makeAddonArguments } from './build-native.mjs';
import { root } from './steps.mjs';

const LIMIT_SECONDS = 120;

/** `make` runs make in native/ with these arguments. Resolves to whether a failed test has caught every mutant. */
export async function testAddonMutants(make) {
  const mutants = readFileSync(join(root, 'native', 'test', 'mutants.txt'), 'utf8')
    .split('\n')
    .map((line) => line.split(' | '))
    .filter(([, file]) => file?.startsWith('addon/'))
    .map(([name, , , tests]) => ({ name, tests }));
  make([...mutants.map(({ name }) => `build/mutants/${name}/trawl.node`), ...makeAddonArguments()]);
  const build = join(root, 'native', 'build');
  let right = true;
  const report = (isRight, text) => {
    process.stdout.write(`${text}\n`);
    right &&= isRight;
  };
  // Without a fault, each of the tests has to run and pass in the copy.
  const unchanged = [...new Set(mutants.map(({ tests }) => tests))].map((tests) => async (copy) => {
    const { passed, failed, ended } = await outcomeOf(copy, join(build, 'addon', 'trawl.node'), tests);
    const problem =
      ended ?? (failed === undefined ? undefined : `fails: ${failed}`) ?? (passed ? undefined : 'runs no test');
    if (problem !== undefined) report(false, `WITHOUT A MUTANT, "${tests}" ${problem}`);
  });
  const changed = mutants.map(({ name, tests }) => async (copy) => {
    const { failed, ended } = await outcomeOf(copy, join(build, 'mutants', name, 'trawl.node'), tests);
    if (failed !== undefined) report(true, `caught: ${name}: ${failed}`);
    else report(false, ended === undefined ? `NOT CAUGHT: ${name}` : `NO FAILED TEST: ${name}: "${tests}" ${ended}`);
  });
  const runs = [...unchanged, ...changed].values();
  // Runs at the same time have a copy each, because each puts its addon there.
  const copies = Array.from({ length: availableParallelism() }, (_, i) => join(build, 'mutants', `package-${i}`));
  await Promise.all(
    copies.map(async (copy) => {
      copyPackage(copy);
      for (const run of runs) await run(copy);
      rmSync(copy, { recursive: true });
    }),
  );
  return right;
}

/** A package without an addon. Its compiled files, which load native/build/addon/ of their package, are copies, all others links. */
function copyPackage(copy) {
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(join(copy, 'native', 'build', 'addon'), { recursive: true });
  cpSync(join(root, 'dist'), join(copy, 'dist'), { recursive: true });
  const link = (folder, without) => {
    for (const name of readdirSync(join(root, folder))) {
      if (!without.includes(name)) symlinkSync(join(root, folder, name), join(copy, folder, name));
    }
  };
  link('.', ['dist', 'native']);
  link('native', ['build']);
}

/**
 * Puts an addon into a copy of the package and runs the tests of one file whose names begin like this, such as
 * `native/native-addon: every function`. Resolves to whether one passed, the name of one that failed, and, if the process has not ended by
 * itself with the result of its tests, how it ended.
 */
async function outcomeOf(copy, addon, tests) {
  cpSync(addon, join(copy, 'native', 'build', 'addon', 'trawl.node'));
  const [, file, name] = /^(.*?): (.*)$/.exec(tests);
  const pattern = `^${name.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')}`;
  const args = [
    '--test-force-exit',
    '--test-reporter=tap',
    `--test-name-pattern=${pattern}`,
    join('dist', 'test', 'engine', `${file}.test.js`),
  ];
  const options = { cwd: copy, timeout: 1000 * LIMIT_SECONDS, killSignal: 'SIGKILL', maxBuffer: 2 ** 26 };
  const { error, stdout, stderr } = await new Promise((resolve) => {
    execFile(process.execPath, args, options, (failure, out, err) =>
      resolve({ error: failure, stdout: out, stderr: err }),
    );
  });
  const results = [...stdout.matchAll(/^ *(not )?ok \d+ - (.*)$/gm)].filter(([, , test]) => test.startsWith(name));
  const failed = results.find(([, not]) => not !== undefined)?.[2];
  const passed = results.some(([, not, test]) => not === undefined && !/ # (SKIP|TODO)/.test(test));
  if (error === null || (error.code === 1 && failed !== undefined)) return { passed, failed };
  if (error.killed) return { passed, failed, ended: `took more than ${LIMIT_SECONDS} s` };
  return { passed, failed, ended: `ended with ${error.signal ?? error.code}: ${stderr.slice(-500)}` };
}

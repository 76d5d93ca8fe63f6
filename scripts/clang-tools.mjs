// clang-format and clang-tidy from PyPI, in the user's cache folder. Another version formats in another way, so the versions are fixed.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { cachePath } from './cached-packages.mjs';
import { filesBelow, outputOfFailure, root } from './steps.mjs';

const REQUIREMENTS = ['clang-format==23.1.5', 'clang-tidy==23.1.4'];
const FOLDER = cachePath(`clang-${REQUIREMENTS.map((each) => each.split('==')[1]).join('-')}`);

/** The path of `clang-format` or `clang-tidy`; undefined if it is not installed. */
export function clangTool(name) {
  const path = join(FOLDER, 'bin', name);
  return existsSync(path) ? path : undefined;
}

/** Installs both, once, with `installOnce` of bench/install-once.ts. Resolves to undefined, or to why they could not be installed. */
export async function installClangTools(installOnce) {
  const note = (text) => process.stderr.write(`${text}\n`);
  const step = async (command, args) => {
    const failure = await outputOfFailure(command, args, { cwd: root, env: process.env });
    if (failure !== undefined) throw new Error(failure);
  };
  try {
    await installOnce(FOLDER, { note }, async () => {
      note(`Installing clang-format and clang-tidy into ${FOLDER} (once)`);
      await step('python3', ['-m', 'venv', FOLDER]);
      const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--only-binary=:all:'];
      await step(join(FOLDER, 'bin', 'python'), [...pip, ...REQUIREMENTS]);
    });
  } catch (error) {
    return error.message;
  }
}

/** The engine's C++ files. native/.clang-format-ignore names those that are not formatted. */
export function engineSources() {
  return ['addon', 'bench', 'include', 'src', 'test'].flatMap((folder) =>
    ['.cpp', '.hpp'].flatMap((ending) => filesBelow(join(root, 'native', folder), ending)),
  );
}

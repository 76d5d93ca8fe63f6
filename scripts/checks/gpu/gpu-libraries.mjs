// Brings what `npm run check -- gpu` needs of CUDA: onnxruntime's CUDA provider, and the libraries that it is linked with.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { cachePath } from '../../cached-packages.mjs';
import { fail } from '../../steps.mjs';

/** The files that onnxruntime-node loads for CUDA. */
const PROVIDER = ['libonnxruntime_providers_cuda.so', 'libonnxruntime_providers_shared.so'];
/** The libraries of CUDA 13 that the provider from PyPI is linked with, and the packages that have them. */
const LIBRARY = 'libcublasLt.so.13';
const LIBRARY_PACKAGES = ['nvidia-cublas==13.*', 'nvidia-cuda-runtime==13.*', 'nvidia-curand==10.*'];

/**
 * Copies the provider from a folder into onnxruntime-node; without a folder, downloads it if there is a GPU and it is missing: from
 * PyPI, whose releases are linked with CUDA 13, else with onnxruntime-node's own script.
 */
export function bringProvider(given, say) {
  const require = createRequire(import.meta.url);
  const package_ = dirname(require.resolve('onnxruntime-node/package.json'));
  const folder = join(package_, 'bin', 'napi-v6', 'linux', 'x64');
  if (given !== undefined) return copyProvider(given, folder);
  if (!existsSync('/dev/nvidiactl') || PROVIDER.every((name) => existsSync(join(folder, name)))) return;
  say("Downloading onnxruntime's CUDA provider (about 250 MB, once)");
  const { version } = require('onnxruntime-node/package.json');
  const wheels = mkdtempSync(join(tmpdir(), 'trawl-cuda-'));
  const clean = () => rmSync(wheels, { recursive: true, force: true });
  process.once('exit', clean);
  // Behind pip, which ends with the same signal.
  const stop = () => process.exit(130);
  process.once('SIGINT', stop);
  try {
    // The files are the same for every Python; the platform's tags are named so that any pip takes the wheel.
    const platforms = ['manylinux_2_28_x86_64', 'manylinux_2_27_x86_64'].flatMap((tag) => ['--platform', tag]);
    const wheel = ['--no-deps', '--only-binary=:all:', '--python-version', '3.12', ...platforms, '-d', wheels];
    const [name] = pip('download', ...wheel, `onnxruntime-gpu==${version}`) ? readdirSync(wheels) : [];
    if (name !== undefined && python('-m', 'zipfile', '-e', join(wheels, name), wheels)) {
      return copyProvider(join(wheels, 'onnxruntime', 'capi'), folder);
    }
  } finally {
    clean();
    process.off('exit', clean);
    process.off('SIGINT', stop);
  }
  say("PyPI did not give it. Trying onnxruntime-node's own script, which downloads from nuget.org");
  const install = join(package_, 'script', 'install.js');
  const { status } = spawnSync(process.execPath, [install, '--onnxruntime-node-install=cuda12'], {
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) say('It did not give it either. docs/gpu.md says how to bring it to a machine without internet.');
}

function copyProvider(from, folder) {
  const missing = PROVIDER.find((name) => !existsSync(join(from, name)));
  if (missing !== undefined) {
    fail(`${join(from, missing)} is missing; --provider is a folder with ${PROVIDER.join(' and ')}.`);
  }
  try {
    for (const name of PROVIDER) {
      // A copy that is stopped leaves no file of the right name.
      const part = join(folder, `${name}.part`);
      copyFileSync(join(from, name), part);
      renameSync(part, join(folder, name));
    }
  } catch (error) {
    fail(`onnxruntime's CUDA provider cannot be copied into ${folder}: ${error.message}`);
  }
}

/** Where CUDA's libraries are: `given`, the toolkit, the wheels that torch depends on; if nowhere, they are installed in the cache. */
export function cudaFolders(given, python_, say) {
  const toolkits = existsSync('/usr/local')
    ? readdirSync('/usr/local')
        .filter((name) => name.startsWith('cuda'))
        .map((name) => join('/usr/local', name, 'lib64'))
    : [];
  const list = 'import sysconfig; print(sysconfig.get_paths()["purelib"])';
  const { stdout = '' } = spawnSync(python_ ?? 'python3', ['-c', list], { encoding: 'utf8' });
  const folders = [...given, ...toolkits, ...wheelFolders((stdout ?? '').trim())].filter((folder) =>
    existsSync(folder),
  );
  if (hasLibrary(folders) || given.length > 0 || !existsSync('/dev/nvidiactl')) return folders;
  const cache = cachePath('cuda-13');
  if (!hasLibrary(wheelFolders(cache))) {
    say('Installing the libraries of CUDA 13 (about 550 MB, once)');
    if (!pip('install', '--no-deps', '--upgrade', '--target', cache, ...LIBRARY_PACKAGES)) {
      say('They could not be installed. docs/gpu.md says how to bring them to a machine without internet.');
    }
  }
  return [...folders, ...wheelFolders(cache)];
}

function hasLibrary(folders) {
  return folders.some((folder) => existsSync(join(folder, LIBRARY)));
}

function wheelFolders(packages) {
  const wheels = join(resolve(packages), 'nvidia');
  if (!existsSync(wheels)) return [];
  return readdirSync(wheels)
    .map((name) => join(wheels, name, 'lib'))
    .filter((folder) => existsSync(folder));
}

function pip(...args) {
  return python('-m', 'pip', ...args);
}

function python(...args) {
  return spawnSync('python3', args, { stdio: ['ignore', 2, 2] }).status === 0;
}

// `npm run package`: makes the npm package trawl-retrieval-VERSION.tgz, or one in another folder: `npm run package -- --out DIR`.
// `-- --only-here` compiles only the prebuilt binary for this machine. `-- --compiled-here`, for tests, has the binary that the
// checkout uses in place of prebuilt ones: it needs this system's C library, and takes no time.
//
// `npm pack` in the checkout refuses, because a published package differs from the checkout. It contains onnxruntime-node itself,
// without its install script (which downloads 300 MB of CUDA libraries, and fails the installation where it cannot) and without its
// binaries for Windows. And it does not depend on the packages that are part of dist/bundle (scripts/bundle.mjs). Everything else
// comes from the npm registry when the package is installed.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { BUNDLED as IN_BUNDLE } from './bundle.mjs';
import { PACKED } from './installed-packages.mjs';
import { NODE_API, PREBUILD_TARGETS, prebuild, prebuiltIsCurrent } from './prebuild.mjs';
import { fail, root, setup } from './setup.mjs';
import { writeDeclarations } from './typescript.mjs';

const NEEDED_FILES = [
  'dist/bundle/main.js',
  'dist/bundle/library.js',
  'dist/bundle/client.js',
  'dist/bundle/LICENSES.txt',
  'dist/src/index.d.ts',
  'dist/src/client/index.d.ts',
];
/** The scripts of package.json that an installed package has. */
const SCRIPTS = ['install'];

const { values } = readArguments();
await setup();
await writeDeclarations(join(root, 'dist'));
const { targetOf, thisMachine } = await import('../dist/src/engine/native/prebuilt-addon.js');
const compiledHere = values['compiled-here'] ? targetOf(thisMachine()) : undefined;
const targets = values['only-here'] ? [targetOf(thisMachine())] : PREBUILD_TARGETS;
const missing = compiledHere === undefined ? targets.filter((target) => !prebuiltIsCurrent(target)) : [];
if (missing.length > 0) await prebuild(missing);
const out = resolve(values.out);
mkdirSync(out, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), 'trawl-package-'));
try {
  await stage(folder);
  const [{ filename, size, unpackedSize }] = npmPack(folder, ['--pack-destination', out]);
  const sizes = `${(size / 1e6).toFixed(1)} MB, ${(unpackedSize / 1e6).toFixed(1)} MB unpacked`;
  process.stdout.write(`${join(out, filename)}  ${sizes}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Copies what the package contains. */
async function stage(target) {
  const listed = npmPack(root, ['--dry-run'])[0].files.map(({ path }) => path);
  // Another set-up may have replaced dist/ meanwhile.
  for (const path of NEEDED_FILES) if (!listed.includes(path)) fail(`${path} is missing. Run the command again.`);
  for (const path of [...listed, ...(compiledHere === undefined ? prebuiltFiles() : [])]) copy(path, target);
  if (compiledHere !== undefined) addCompiled(target);
  const { scripts, devDependencies, allowScripts, overrides, files, ...facts } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  );
  const { version } = JSON.parse(
    readFileSync(join(root, 'node_modules', 'onnxruntime-common', 'package.json'), 'utf8'),
  );
  const installed = Object.fromEntries(
    Object.entries(facts.dependencies).filter(([name]) => !IN_BUNDLE.includes(name)),
  );
  const packed = {
    ...facts,
    os: ['linux', 'darwin'],
    man: ['man/trawl.1'],
    scripts: Object.fromEntries(SCRIPTS.map((name) => [name, scripts[name]])),
    dependencies: { ...installed, 'onnxruntime-node': version, 'onnxruntime-common': version },
    bundleDependencies: PACKED,
  };
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(packed, null, 2)}\n`);
  mkdirSync(join(target, 'man'));
  writeFileSync(join(target, 'man', 'trawl.1'), await manualPage());
  for (const name of PACKED) bundle(name, target);
}

async function manualPage() {
  const [{ manPage }, { loadCommands }, { packageVersion }] = await Promise.all([
    import('../dist/cli/program/man-page.js'),
    import('../dist/cli/program/commands.js'),
    import('../dist/src/base/package-root.js'),
  ]);
  return manPage(await loadCommands(), packageVersion);
}

/** Only binaries of the present sources: an older one would not have the functions that dist/ calls. */
function prebuiltFiles() {
  const { binaries } = JSON.parse(readFileSync(join(root, 'prebuilds', 'prebuilds.json'), 'utf8'));
  return ['prebuilds/prebuilds.json', ...Object.keys(binaries).map((target) => `prebuilds/${target}/trawl.node`)];
}

/** The binary that was compiled here, listed as a prebuilt one. */
function addCompiled(target) {
  const bytes = readFileSync(join(root, 'native', 'build', 'addon', 'trawl.node'));
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const list = { nodeApi: NODE_API, binaries: { [compiledHere]: { sha256, bytes: bytes.length } } };
  mkdirSync(join(target, 'prebuilds', compiledHere), { recursive: true });
  writeFileSync(join(target, 'prebuilds', compiledHere, 'trawl.node'), bytes);
  writeFileSync(join(target, 'prebuilds', 'prebuilds.json'), JSON.stringify(list, null, 2));
}

function bundle(name, target) {
  const from = join('node_modules', name);
  for (const part of readdirSync(join(root, from))) {
    if (['script', 'lib', 'package.json'].includes(part)) continue;
    copy(
      join(from, part),
      target,
      (path) => !/[/\\]win32|\.map$|[/\\]libonnxruntime\.\d+\.\d+\.\d+\.dylib$/.test(path),
    );
  }
  const {
    scripts,
    devDependencies,
    dependencies = {},
    ...facts
  } = JSON.parse(readFileSync(join(root, from, 'package.json'), 'utf8'));
  // Its other dependencies are those of its install script.
  const kept = Object.fromEntries(Object.entries(dependencies).filter(([dependency]) => PACKED.includes(dependency)));
  writeFileSync(join(target, from, 'package.json'), JSON.stringify({ ...facts, dependencies: kept }, null, 2));
}

function copy(path, target, filter = () => true) {
  mkdirSync(dirname(join(target, path)), { recursive: true });
  cpSync(join(root, path), join(target, path), { recursive: true, dereference: true, filter });
}

function npmPack(cwd, args) {
  const { status, stdout, stderr } = spawnSync('npm', ['pack', '--json', '--ignore-scripts', ...args], {
    cwd,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) fail(`npm pack failed.\n${stderr}`);
  return JSON.parse(stdout);
}

function readArguments() {
  try {
    return parseArgs({
      options: {
        out: { type: 'string', default: '.' },
        'only-here': { type: 'boolean', default: false },
        'compiled-here': { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    return fail(`${error.message}\nUsage: npm run package -- [--out DIR] [--only-here|--compiled-here]`);
  }
}

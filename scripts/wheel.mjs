// `npm run wheel`: makes the Python wheel trawl-retrieval of clients/retrieval, with the npm package and its dependencies in it, for
// this machine or `-- --target linux-arm64`. `-- --out DIR` puts it into another folder, `-- --package FILE.tgz` takes an npm
// package that is there, `-- --compiled-here` makes one for tests, `-- --python PROGRAM` builds with a Python that has hatchling, in
// place of an isolated build.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { filesBelow } from './setup.mjs';
import { fail, root, run, runNpm } from './steps.mjs';

/** The platform of each target in the wheel's name: the systems on which Node.js and the package's binaries run. */
const PLATFORMS = {
  'linux-x64': 'manylinux_2_28_x86_64',
  'linux-arm64': 'manylinux_2_28_aarch64',
  'darwin-arm64': 'macosx_13_5_arm64',
};

const { values } = readArguments();
const platform = PLATFORMS[values.target];
if (platform === undefined) fail(`--target is ${values.target}; expected one of ${Object.keys(PLATFORMS).join(', ')}.`);
const [system, processor] = values.target.split('-');
const out = resolve(values.out);
mkdirSync(out, { recursive: true });
const work = mkdtempSync(join(tmpdir(), 'trawl-wheel-'));
// Also after `fail`, which ends the process.
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
const file = values.package === undefined ? await makePackage() : resolve(values.package);
const node = join(work, 'node');
mkdirSync(node);
const args = [
  'install',
  '--prefix',
  node,
  '--os',
  system,
  '--cpu',
  processor,
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
];
await runNpm([...args, file], { cwd: node, onFailure: 'npm could not install the package.' });
const binary = join('prebuilds', values.target, 'trawl.node');
// Without it the program would search in TypeScript, and nobody would notice.
if (!existsSync(join(node, 'node_modules', 'trawl-retrieval', binary)))
  fail(`${file} has no ${binary}. \`npm run prebuilds -- ${values.target}\` and \`npm run package\` make it.`);
// man looks for it in share/man beside the folder of the program.
const manual = join(work, 'trawl.1');
renameSync(join(node, 'node_modules', 'trawl-retrieval', 'man', 'trawl.1'), manual);
leaveOut(join(node, 'node_modules'));
const env = {
  ...process.env,
  TRAWL_WHEEL_NODE: node,
  TRAWL_WHEEL_MANUAL: manual,
  TRAWL_WHEEL_PLATFORM: platform,
};
const isolated = values.python === 'python3' ? [] : ['--no-build-isolation'];
const wheel = ['-m', 'pip', 'wheel', '--quiet', '--disable-pip-version-check', '--no-deps', ...isolated];
await run(values.python, [...wheel, '--wheel-dir', out, join(root, 'clients', 'retrieval')], {
  env,
  onFailure: 'pip could not build the wheel.',
});
const made = readdirSync(out).find((name) => name.startsWith('trawl_retrieval-') && name.includes(platform));
process.stdout.write(`${join(out, made)}\n`);

async function makePackage() {
  const script = join(root, 'scripts', 'package.mjs');
  const here = values.target === `${process.platform}-${process.arch}` ? ['--only-here'] : [];
  const args = values['compiled-here'] ? ['--compiled-here'] : here;
  await run(process.execPath, [script, '--out', work, ...args], { onFailure: 'No npm package was made.' });
  return join(
    work,
    readdirSync(work).find((name) => name.endsWith('.tgz')),
  );
}

/** Removes what only other systems, compilers and editors use: most of the size. */
function leaveOut(modules) {
  const remove = (path) => rmSync(join(modules, path), { recursive: true, force: true });
  const others = (folder, keeps) => {
    for (const name of existsSync(join(modules, folder)) ? readdirSync(join(modules, folder)) : [])
      if (!keeps(name)) remove(join(folder, name));
  };
  const onnxruntime = 'trawl-retrieval/node_modules/onnxruntime-node/bin/napi-v6';
  others(onnxruntime, (name) => name === system);
  others(`${onnxruntime}/${system}`, (name) => name === processor);
  others('better-sqlite3/prebuilds', (name) => name.startsWith(`${system}-${processor}`));
  others('trawl-retrieval/prebuilds', (name) => name === `${system}-${processor}` || name === 'prebuilds.json');
  for (const folder of ['better-sqlite3/deps', 'better-sqlite3/src', 'node-api-headers', 'node-addon-api', '.bin'])
    remove(folder);
  for (const folder of ['native', 'docs', 'deploy', 'man']) remove(join('trawl-retrieval', folder));
  for (const ending of ['.map', '.d.ts', '.d.mts', '.d.cts'])
    for (const file of filesBelow(modules, ending)) rmSync(file);
}

function readArguments() {
  try {
    return parseArgs({
      options: {
        out: { type: 'string', default: '.' },
        package: { type: 'string' },
        'compiled-here': { type: 'boolean', default: false },
        python: { type: 'string', default: 'python3' },
        target: { type: 'string', default: `${process.platform}-${process.arch}` },
      },
    });
  } catch (error) {
    return fail(
      `${error.message}\nUsage: npm run wheel -- [--out DIR] [--package FILE.tgz] [--python PROGRAM] [--target TARGET]`,
    );
  }
}

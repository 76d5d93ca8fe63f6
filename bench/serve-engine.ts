import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot, packageVersion } from '../src/package-root.ts';
import { openBaselineScript } from './baselines.ts';
import { EngineUnavailable } from './script-process.ts';

export const SERVE_BASELINES = ['search-r1'] as const;
export type ServeBaseline = (typeof SERVE_BASELINES)[number];

/** A server that listens on 127.0.0.1. */
export interface ServeEngine {
  readonly name: string;
  readonly version: string;
  readonly port: number;
  close(): Promise<void>;
}

/** A path, not an import: nothing here depends on the program. */
export const TRAWL = join(packageRoot, 'dist', 'cli', 'trawl.js');
const IDLE_SERVER = fileURLToPath(new URL('./idle-server.js', import.meta.url));
const TRIVIAL_SERVER = fileURLToPath(new URL('./trivial-server.js', import.meta.url));
/** Characters of its last words that are kept. */
const LAST_WORDS = 2_000;

/** The options that this program's `serve` knows, of those asked about. */
export async function knownServeOptions(options: readonly string[]): Promise<Set<string>> {
  const child = spawn(process.execPath, [TRAWL, 'serve', '--help'], { stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk));
  await once(child, 'close');
  return new Set(options.filter((option) => new RegExp(`${option}\\b`).test(text)));
}

/** `trawl serve`, as a user starts it but for `args`; its log goes nowhere. */
export function startTrawl(name: string, index: string, args: readonly string[]): Promise<ServeEngine> {
  return startNode(name, [TRAWL, 'serve', index, '--port', '0', '--json', ...args]);
}

/** Trawl's HTTP layer, search and passages behind an encoder that costs nothing. */
export function startIdleServer(index: string): Promise<ServeEngine> {
  return startNode('trawl', [IDLE_SERVER, index]);
}

export function startTrivialServer(): Promise<ServeEngine> {
  return startNode('nothing', [TRIVIAL_SERVER]);
}

/** A program that says {"url": …} on its standard output when it is ready, and ends with SIGTERM. */
async function startNode(name: string, args: readonly string[]): Promise<ServeEngine> {
  // A process group of its own: Ctrl-C is for the command, which closes this one.
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let lastWords = '';
  child.stderr.on('data', (chunk: Buffer) => {
    lastWords = `${lastWords}${chunk}`.slice(-LAST_WORDS);
  });
  const ended = once(child, 'close');
  const line = new Promise<string>((resolve) => {
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk;
      if (text.includes('\n')) resolve(text);
    });
  });
  const died = ended.then(([code]) => {
    throw new EngineUnavailable(`${name} ended with ${String(code)}: ${lastWords.trim().split('\n').at(-1) ?? ''}`);
  });
  const { url } = JSON.parse(await Promise.race([line, died])) as { url: string };
  died.catch(() => undefined);
  return {
    name,
    version: `trawl ${packageVersion}`,
    port: Number(new URL(url).port),
    close: () => endOf(child, ended),
  };
}

async function endOf(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  child.kill();
  // What a load has left running is not waited for.
  const kill = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await ended;
  clearTimeout(kill);
}

export interface BaselineServerOptions {
  readonly python: string;
  readonly threads: number;
  /** A transformers folder. */
  readonly model: string;
  /** FAISS file. */
  readonly vectors: string;
  /** JSON lines, a passage for each vector. */
  readonly corpus: string;
  readonly prefix: string;
  readonly maxTokens: number;
  readonly topk: number;
}

/** @throws EngineUnavailable when Python, a package or a file is missing. */
export async function startBaseline(name: ServeBaseline, options: BaselineServerOptions): Promise<ServeEngine> {
  const { python, threads, ...load } = options;
  const file = `serve_${name.replaceAll('-', '_')}`;
  const script = openBaselineScript<{ version: string; port: number }>(file, name, { python, threads });
  try {
    const { version, port } = await script.ask({ do: 'load', ...load });
    return { name, version, port, close: () => script.close() };
  } catch (error) {
    await script.close();
    throw error;
  }
}

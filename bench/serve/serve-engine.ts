import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot, packageVersion } from '../../src/base/package-root.ts';
import { openBaselineScript } from '../baselines.ts';
import { processPeakBytes } from '../process-peak.ts';
import { EngineUnavailable } from '../script-process.ts';

export const SERVE_BASELINES = ['search-r1'] as const;
export type ServeBaseline = (typeof SERVE_BASELINES)[number];

/** A server that listens on 127.0.0.1. */
export interface ServeEngine {
  readonly name: string;
  readonly version: string;
  readonly port: number;
  /** Peak resident memory, in bytes; null if the system does not tell. */
  residentBytes(): Promise<number | null>;
  close(): Promise<void>;
}

/** The `trawl` program. It is started as a process, because bench/ must not import cli/. */
export const TRAWL = join(packageRoot, 'dist', 'cli', 'trawl.js');
const NO_OP_ENCODER_SERVER = fileURLToPath(new URL('./no-op-encoder-server.js', import.meta.url));
const FIXED_REPLY_SERVER = fileURLToPath(new URL('./fixed-reply-server.js', import.meta.url));
/** Characters of a server's stderr that are kept for its error. */
const STDERR_TAIL = 2_000;

/** `trawl serve` as a user starts it, with `args` added. Its log is discarded. */
export function startTrawl(name: string, index: string, args: readonly string[]): Promise<ServeEngine> {
  return startNode(name, [TRAWL, 'serve', index, '--port', '0', '--json', ...args]);
}

/** Trawl's HTTP layer, search and passages with an encoder that takes almost no time. */
export function startNoOpEncoderServer(index: string): Promise<ServeEngine> {
  return startNode('trawl', [NO_OP_ENCODER_SERVER, index]);
}

export function startFixedReplyServer(): Promise<ServeEngine> {
  return startNode('fixed reply', [FIXED_REPLY_SERVER]);
}

/** Starts a program that writes {"url": …} to stdout when it is ready, and exits on SIGTERM. */
async function startNode(name: string, args: readonly string[]): Promise<ServeEngine> {
  // A process group of its own, so that Ctrl-C reaches only the command, which then closes this process.
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let stderrTail = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderrTail = `${stderrTail}${chunk}`.slice(-STDERR_TAIL);
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
    throw new EngineUnavailable(`${name} ended with ${String(code)}: ${stderrTail.trim().split('\n').at(-1) ?? ''}`);
  });
  const { url } = JSON.parse(await Promise.race([line, died])) as { url: string };
  died.catch(() => undefined);
  return {
    name,
    version: `trawl ${packageVersion}`,
    port: Number(new URL(url).port),
    residentBytes: async () => processPeakBytes(child.pid!),
    close: () => endOf(child, ended),
  };
}

async function endOf(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  child.kill();
  // The server may still work on requests whose clients have left.
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
  /** JSON lines, one passage per vector. */
  readonly corpus: string;
  readonly prefix: string;
  readonly maxTokens: number;
  readonly topk: number;
}

/** @throws EngineUnavailable if Python, a package or a file is missing. */
export async function startBaseline(name: ServeBaseline, options: BaselineServerOptions): Promise<ServeEngine> {
  const { python, threads, ...load } = options;
  const file = `serve_${name.replaceAll('-', '_')}`;
  const script = openBaselineScript<{ version: string; port: number }>(file, name, { python, threads });
  try {
    const { version, port } = await script.ask({ do: 'load', ...load });
    return {
      name,
      version,
      port,
      residentBytes: async () => script.processBytes(),
      close: () => script.close(),
    };
  } catch (error) {
    await script.close();
    throw error;
  }
}

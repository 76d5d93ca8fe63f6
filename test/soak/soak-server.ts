import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';

/** The resources of the server process at one moment. */
export interface ProcessSample {
  /** Time since the start of the server, ms. */
  readonly atMs: number;
  readonly rssBytes: number;
  /** V8's used heap according to /metrics; null if /metrics did not answer. */
  readonly heapBytes: number | null;
  /** Open files and sockets. */
  readonly handles: number;
  /** Number of handles by target: `socket`, `pipe`, `anon_inode:[eventfd]`, or the path of a file. */
  readonly targets: Readonly<Record<string, number>>;
  readonly threads: number;
}

export interface SoakServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** False once the process has ended. */
  readonly alive: boolean;
  sample(): Promise<ProcessSample>;
  /** Fetches the text of /metrics. */
  metrics(): Promise<string>;
  /** Sends SIGTERM; resolves to the exit code, or to the signal that ended the process. */
  stop(): Promise<number | NodeJS.Signals>;
}

export interface SoakServerOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** File descriptor for the server's log. Default: the log is discarded. */
  readonly log?: number;
}

const PROGRAM = join(packageRoot, 'dist', 'cli', 'trawl.js');
const START_MS = 60_000;
const METRICS_MS = 10_000;

/** Starts `trawl serve` with its log on, on a free port. Linux only: memory and handles are read from /proc. */
export async function startSoakServer(index: string, options: SoakServerOptions = {}): Promise<SoakServer> {
  const { args = [], env = {}, log } = options;
  const started = performance.now();
  const child = spawn(process.execPath, [PROGRAM, 'serve', index, '--port', '0', '--json', ...args], {
    stdio: ['ignore', 'pipe', log ?? 'ignore'],
    env: { ...process.env, ...env },
  });
  let end: number | NodeJS.Signals | undefined;
  const ended = once(child, 'close').then(([code, signal]) => {
    end = (code as number | null) ?? (signal as NodeJS.Signals);
    return end;
  });
  const line = await new Promise<string>((resolve, reject) => {
    let text = '';
    const timer = setTimeout(() => reject(new Error(`the server was not ready in ${START_MS} ms`)), START_MS);
    child.stdout!.on('data', (chunk: Buffer) => {
      text += chunk;
      if (!text.includes('\n')) return;
      clearTimeout(timer);
      resolve(text);
    });
    void ended.then((how) => reject(new Error(`the server ended with ${how} before it was ready`)));
  });
  const { url } = JSON.parse(line) as { url: string };
  const pid = child.pid!;
  const metrics = async (): Promise<string> =>
    (await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(METRICS_MS) })).text();
  return {
    url,
    port: Number(new URL(url).port),
    pid,
    get alive() {
      return end === undefined;
    },
    async sample() {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
      const targets = targetsOf(pid);
      return {
        atMs: performance.now() - started,
        rssBytes: field('VmRSS') * 1024,
        heapBytes: await metrics().then(heapBytes, () => null),
        handles: Object.values(targets).reduce((sum, count) => sum + count, 0),
        targets,
        threads: field('Threads'),
      };
    },
    metrics,
    async stop() {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

function targetsOf(pid: number): Record<string, number> {
  const targets: Record<string, number> = {};
  for (const handle of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const target = readlinkSync(`/proc/${pid}/fd/${handle}`).replace(/:\[\d+\]$/, '');
      targets[target] = (targets[target] ?? 0) + 1;
    } catch {
      // It was closed after the folder was read.
    }
  }
  return targets;
}

function heapBytes(metrics: string): number | null {
  const bytes = metricOf(metrics, 'nodejs_heap_size_used_bytes');
  return Number.isNaN(bytes) ? null : bytes;
}

/** The sum of a metric's values, over all label sets or those that contain `label`; NaN if the metric is missing. */
export function metricOf(metrics: string, name: string, label = ''): number {
  const values = metrics.split('\n').flatMap((line) => {
    const [, labels = '', value] = /^(?:\w+)(\{[^}]*\})? (\S+)$/.exec(line) ?? [];
    return line.split(/[ {]/, 1)[0] === name && labels.includes(label) ? [Number(value)] : [];
  });
  return values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0);
}

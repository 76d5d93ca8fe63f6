import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { baselineScript } from './baselines.ts';
import type { BaselineName, BenchEngine, TimedAnswer } from './bench-engine.ts';

/** Why a baseline is left out, or stopped. Never a reason to fail. */
export class BaselineUnavailable extends Error {
  override readonly name = 'BaselineUnavailable';
}

export interface BaselineOptions {
  readonly python: string;
  readonly threads: number;
  /** FAISS file of the rows. */
  readonly vectors: string;
  /** .npy file of the queries. */
  readonly queries: string;
}

/** What a script answers; which fields depends on the request. */
interface Reply {
  readonly error?: string;
  readonly version: string;
  readonly ms: number;
  readonly rows: readonly number[];
  readonly scores: readonly number[];
  readonly residentBytes: number;
}

/** Characters of a script's last words that are kept. */
const LAST_WORDS = 2000;

/**
 * A baseline in its own Python process, with its rows loaded.
 *
 * @throws BaselineUnavailable when Python, a package or memory is missing.
 */
export async function openBaseline(name: BaselineName, options: BaselineOptions): Promise<BenchEngine> {
  const script = new BaselineScript(name, options);
  try {
    const { version } = await script.ask({ do: 'load', vectors: options.vectors, queries: options.queries });
    return new BaselineEngine(name, version, script);
  } catch (error) {
    await script.close();
    throw error;
  }
}

class BaselineEngine implements BenchEngine {
  readonly name: BaselineName;
  readonly version: string;
  readonly #script: BaselineScript;

  constructor(name: BaselineName, version: string, script: BaselineScript) {
    this.name = name;
    this.version = version;
    this.#script = script;
  }

  async search(first: number, count: number, k: number): Promise<TimedAnswer> {
    const { ms } = await this.#script.ask({ do: 'search', first, count, k });
    const { rows, scores } = await this.#script.ask({ do: 'answer' });
    return { ms, rows, scores };
  }

  async residentBytes(): Promise<number> {
    return (await this.#script.ask({ do: 'memory' })).residentBytes;
  }

  close(): Promise<void> {
    return this.#script.close();
  }
}

/** One running script: a request at a time, a line each way (bench/baselines/protocol.py). */
class BaselineScript {
  readonly #name: string;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #ended: Promise<void>;
  #lastWords = '';
  #end: string | undefined;
  #waiting: { resolve(reply: Reply): void; reject(error: Error): void } | undefined;

  constructor(name: BaselineName, { python, threads }: BaselineOptions) {
    this.#name = name;
    const script = baselineScript(name);
    if (!existsSync(script)) throw new BaselineUnavailable(`${script} is not there: baselines come with a checkout`);
    this.#child = spawn(python, ['-B', script, String(threads)], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#ended = new Promise((resolve) => {
      const end = (reason: string): void => {
        this.#end ??= reason;
        this.#settle()?.reject(this.#unavailable());
        resolve();
      };
      this.#child.on('error', (error) => end(error.message));
      this.#child.on('close', (code, signal) => end(`${python} ended with ${signal ?? code}`));
    });
    // A script that died is told by its end.
    this.#child.stdin.on('error', () => undefined);
    this.#child.stderr.on('data', (chunk: Buffer) => {
      this.#lastWords = `${this.#lastWords}${chunk}`.slice(-LAST_WORDS);
    });
    createInterface({ input: this.#child.stdout }).on('line', (line) =>
      this.#settle()?.resolve(JSON.parse(line) as Reply),
    );
  }

  async ask(request: { do: string } & Readonly<Record<string, string | number>>): Promise<Reply> {
    if (this.#end !== undefined) throw this.#unavailable();
    const reply = await new Promise<Reply>((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#child.stdin.write(`${JSON.stringify(request)}\n`);
    });
    if (reply.error !== undefined) throw new BaselineUnavailable(reply.error);
    return reply;
  }

  async close(): Promise<void> {
    this.#child.stdin.end();
    // It has nothing to put in order, and a search may take long.
    this.#child.kill();
    await this.#ended;
  }

  #settle() {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }

  #unavailable(): BaselineUnavailable {
    const lastLine = this.#lastWords.trim().split('\n').at(-1) ?? '';
    return new BaselineUnavailable(`${this.#name}: ${this.#end}${lastLine === '' ? '' : ` (${lastLine})`}`);
  }
}

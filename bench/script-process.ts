import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

/** Why an engine is left out, or stopped. For a baseline never a reason to fail. */
export class EngineUnavailable extends Error {
  override readonly name = 'EngineUnavailable';
}

/** Characters of a script's last words that are kept. */
const LAST_WORDS = 2000;

/**
 * A running script that answers requests, one at a time, a line of JSON each way (bench/baselines/protocol.py). Its
 * replies are taken as `Reply` unchecked: the scripts are ours.
 */
export class ScriptProcess<Reply extends object> {
  readonly #name: string;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #ended: Promise<void>;
  #lastWords = '';
  #end: string | undefined;
  #waiting: { resolve(reply: Reply & { error?: string }): void; reject(error: Error): void } | undefined;

  /** `name` is for messages. */
  constructor(name: string, command: string, args: readonly string[]) {
    this.#name = name;
    // A process group of its own: Ctrl-C is for the command, which closes this one.
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
    this.#ended = new Promise((resolve) => {
      const end = (reason: string): void => {
        this.#end ??= reason;
        this.#settle()?.reject(this.#unavailable());
        resolve();
      };
      this.#child.on('error', (error) => end(error.message));
      this.#child.on('close', (code, signal) => end(`${command} ended with ${signal ?? code}`));
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

  /** @throws EngineUnavailable when the script says so, or has ended. */
  async ask(request: { do: string } & Readonly<Record<string, string | number>>): Promise<Reply> {
    if (this.#end !== undefined) throw this.#unavailable();
    const reply = await new Promise<Reply & { error?: string }>((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#child.stdin.write(`${JSON.stringify(request)}\n`);
    });
    if (reply.error !== undefined) throw new EngineUnavailable(reply.error);
    return reply;
  }

  /** At once: it has nothing to put in order, and what it does may take long. Safe to call twice. */
  async close(): Promise<void> {
    this.#child.stdin.end();
    this.#child.kill();
    await this.#ended;
  }

  #settle() {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }

  #unavailable(): EngineUnavailable {
    const lastLine = this.#lastWords.trim().split('\n').at(-1) ?? '';
    return new EngineUnavailable(`${this.#name}: ${this.#end}${lastLine === '' ? '' : ` (${lastLine})`}`);
  }
}
